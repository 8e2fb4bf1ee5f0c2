"""Who calls it all: one process (`local`), or Spark (`spark`), with the same rows.

On Spark a capture is cut into *splits* that are decoded alone (`split`) and put together (`stitch`). `run` is
the entry, `results` what a capture comes to, `decoding` a whole capture decoded in this process.
"""
