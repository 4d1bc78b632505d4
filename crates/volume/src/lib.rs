//! Volumes: images, mkfs, loop devices, mounts, cold caches, twins, and their clean-up.
