//! The systemd units in `contrib/systemd`.

use std::{fs, path::Path, process::Command};

#[test]
fn systemd_accepts_the_service_and_the_timer() {
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/systemd");
    let read = |name: &str| fs::read_to_string(units.join(name)).unwrap();
    let (service, timer) = (read("senesce-defrag@.service"), read("senesce-defrag@.timer"));
    assert!(service.contains("ExecStart=senesce --quiet defrag %f --idle"), "{service}");
    assert!(timer.contains("OnCalendar=weekly") && timer.contains("WantedBy=timers.target"), "{timer}");
    // It fails if the program is not installed, so the units name one that is.
    let home = tempfile::tempdir().unwrap();
    let place = |name: &str| home.path().join(format!("senesce-defrag@srv-data.{name}"));
    fs::write(place("service"), service.replace("ExecStart=senesce", "ExecStart=/bin/true")).unwrap();
    fs::write(place("timer"), timer).unwrap();
    let mut verify = Command::new("systemd-analyze");
    let Ok(done) = verify.args(["verify", "--man=no"]).arg(place("service")).arg(place("timer")).output() else {
        println!("skipped: systemd-analyze is not installed");
        return;
    };
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && !said.contains("senesce-defrag"), "{said}");
}
