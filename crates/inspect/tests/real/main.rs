//! Inspections and models of real file systems on loop devices. They need root.

mod agreement;
mod inspection;
mod kinds;
mod offline;
mod support;
mod unmounted;
