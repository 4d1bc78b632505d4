//! Descriptions of devices: any text is a device or an error, and a device that was taken serves requests in time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use senesce_core::{BlockOp, BlockRequest, Nanos};
use senesce_device::DeviceSpec;

fuzz_target!(|text: &[u8]| {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(spec) = DeviceSpec::parse(text) else { return };
    let again = DeviceSpec::parse(&spec.render().expect("what was read can be written")).expect("and read again");
    assert_eq!(spec, again);
    let mut device = spec.build().expect("it was checked");
    let mut now = Nanos(0);
    for (step, op) in [BlockOp::Read, BlockOp::Write, BlockOp::Read, BlockOp::Discard, BlockOp::Flush].into_iter().enumerate() {
        let sectors = if op == BlockOp::Flush { 0 } else { 64 };
        let sector = (step as u64).wrapping_mul(7_777_777);
        let done = device.serve(&BlockRequest { issued: now, op, sector, sectors }, now);
        assert!(done >= now, "time went backwards");
        now = done;
    }
});
