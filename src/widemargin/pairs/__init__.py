"""Maxi-Min discriminant analysis: pairs of classes, and directions that keep the closest apart.

``class_pairs`` goes through all pairs without a list of them; ``pair_program``, ``online`` and
``semidefinite`` solve the convex relaxation, ``refine`` the criterion itself, ``relaxation`` and
``interior_bound`` bound it, ``maxi_min_engine`` puts them together, and ``sharpness`` chooses what
is to be chosen. ``pairwise_accuracy_weights`` weighs pairs for aPAC.
"""
