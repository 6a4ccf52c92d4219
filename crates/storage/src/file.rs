//! Real files: io_uring with O_DIRECT, or threads where the file system or kernel takes neither.
