"""How often the certificates hold: repeated experiments on populations whose distances are known.

``python -m benchmarks.calibration`` (or ``make calibration``) runs what is not in the cache yet
and writes docs/calibration.md, its table and its pictures.

==============  ======================================================================
`laws`          output distributions by their quantile functions, and true distances
`scenarios`     the populations of the grid
`methods`       every limit of one sample, all trims and levels from one set of resamples
`grid`          the cells: repetitions, summary
`cache`         one file per piece of work, written at once or not at all
`gate`          what the results must satisfy
`convergence`   |SW - SW_hat| against the number of rows
`heldout`       explanations certified on rows the fit never saw, against fresh rows
`families`      groups together, means, clusters, and advice followed
`row_moves`     the root mean square move of a row
`rows`          "needs about n rows" against the n found by simulation
`pictures`      drawn from the tables
`page`          docs/calibration.md
==============  ======================================================================
"""
