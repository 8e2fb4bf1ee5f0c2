"""The live replay: captures that are still being written, judged while they grow.

`folder` copies what is new in a folder, `ledger` is what a watch knows and `checkpoint` keeps it on the disk;
`kept` decodes a stretch of a capture once, `stretches` judges what was decoded, `alerts` are told once each.
`watcher` does one step after the other; `spark_watch` lets Spark's structured streaming decode, `ending`
tells the verdict. A *segment* is a stretch of one file's records that is decoded alone.
"""
