"""What generated code imports: readers and writers of bytes, text and JSON, and the two kinds of error."""
