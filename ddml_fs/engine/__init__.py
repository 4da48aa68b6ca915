"""The stacked engine: many DDML problems solved as one tensor program.

Data flow in one direction: ``plan`` → ``stack`` → ``network`` with ``losses``, ``rdo`` and
``objective`` → ``train`` (with ``gates``) → ``latents`` → ``solve`` → ``run`` → ``predictions``.
Letters of shapes are fixed: ``G`` folds (sets of rows), ``p`` problems per fold, ``P = G·p``
problems, ``B`` rows of a batch, ``N`` samples, ``D`` features, ``H`` hidden units, ``Z`` latents.
"""
