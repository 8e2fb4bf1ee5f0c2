"""What a node keeps: files, a journal, a text file. Their twins are a disk and a simulated one.

A node reads; what it wants written are operations, carried out for it by `Stores`.
"""

from replispec.runtime.storage.interface import (
    DiskUse,
    Files,
    FilesReader,
    Journal,
    JournalReader,
    Lines,
    LinesReader,
    Region,
    Storage,
    StorageFailed,
    StorageFull,
)
from replispec.runtime.storage.operations import (
    AppendLines,
    AppendRecords,
    FlushFiles,
    MakeFile,
    Operation,
    RemoveFile,
    RenameFile,
    ReplaceFile,
    ReplaceRecords,
    Stores,
)

__all__ = [
    "AppendLines",
    "AppendRecords",
    "DiskUse",
    "Files",
    "FilesReader",
    "FlushFiles",
    "Journal",
    "JournalReader",
    "Lines",
    "LinesReader",
    "MakeFile",
    "Operation",
    "Region",
    "RemoveFile",
    "RenameFile",
    "ReplaceFile",
    "ReplaceRecords",
    "Storage",
    "StorageFailed",
    "StorageFull",
    "Stores",
]
