"""What a node keeps: files and a journal, as interfaces. Their twins are a disk and a simulated one."""

from replispec.runtime.storage.interface import Files, Journal, Lines, Region, Storage, StorageFailed

__all__ = ["Files", "Journal", "Lines", "Region", "Storage", "StorageFailed"]
