"""What a node keeps: files, a journal, a text file. Their twins are a disk and a simulated one.

A node reads; what it wants written are operations, carried out for it by `Stores`.
"""

from replispec.runtime.storage.interface import (
    DiskUse,
    Files,
    FilesReader,
    FoldersReader,
    GrowingFile,
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
    CutFile,
    FlushFiles,
    MakeFile,
    Operation,
    RemoveFile,
    RemoveFolder,
    RenameFile,
    RenameFolder,
    ReplaceFile,
    ReplaceRecords,
    Stores,
)

__all__ = [
    "AppendLines",
    "AppendRecords",
    "CutFile",
    "DiskUse",
    "Files",
    "FilesReader",
    "FlushFiles",
    "FoldersReader",
    "GrowingFile",
    "Journal",
    "JournalReader",
    "Lines",
    "LinesReader",
    "MakeFile",
    "Operation",
    "Region",
    "RemoveFile",
    "RemoveFolder",
    "RenameFile",
    "RenameFolder",
    "ReplaceFile",
    "ReplaceRecords",
    "Storage",
    "StorageFailed",
    "StorageFull",
    "Stores",
]
