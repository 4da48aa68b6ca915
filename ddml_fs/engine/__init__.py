"""The stacked engine: many DDML problems solved as one tensor program.

Data flows one way: ``plan`` → ``stack`` → ``network`` + ``losses`` → ``train`` (with ``gates``)
→ ``nuisance`` → ``run``. Shapes are given with fixed letters: ``G`` folds (sets of rows), ``p``
problems a fold, ``P = G·p`` problems, ``B`` rows of a batch, ``N`` samples, ``D`` features,
``H`` hidden, ``Z`` latent.
"""
