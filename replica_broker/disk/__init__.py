"""Files behind a seam, so that a full disk, an I/O error or a crash can be had when a test wants one."""
