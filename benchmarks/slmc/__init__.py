"""The tables and the example of the SLMC paper, training time, MNIST with few vectors, growth.

Tables 1, 2 and 3 at 5 % and 10 % of the SVM's vectors, with the paper's parameters on USPS and
parameters by cross-validation on Rätsch's sets, which are chosen once and kept in the results
(``--parts choice`` chooses again). Each part can be run alone; it then replaces its own figures in
the results and leaves the others.
"""

from benchmarks.slmc.command import main as main
