"""The stacked engine: many DDML problems solved as one tensor program.

Data flows one way: ``plan`` → ``stack`` → ``network`` with ``losses``, ``rdo`` and ``objective`` →
``train`` (with ``gates``) → ``latents`` → ``solve`` → ``run`` → ``predictions``. Shapes are given
with fixed letters: ``G`` folds (sets of rows), ``p`` problems per fold, ``P = G·p`` problems, ``B``
rows of a batch, ``N`` samples, ``D`` features, ``H`` hidden, ``Z`` latent.
"""
