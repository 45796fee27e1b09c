"""The tables and the example of the SLMC paper, training time, MNIST with few vectors, growth.

Tables 1, 2 and 3 at 5 % and 10 % of the SVM's vectors. The SVM has the paper's parameters, and so
have RS, MRS and SLMC; those of the other methods are chosen by cross-validation, once, and kept in
the results (``--parts choice`` chooses again). USPS is measured raw and smoothed. Each part can be
run alone; it then replaces its own figures in the results and leaves the others.
"""

from benchmarks.slmc.command import main as main
