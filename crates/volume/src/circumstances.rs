//! Circumstances of the machine, which are recorded with every result. An adapter that reads
//! `/proc` and `/sys`.
//!
//! A value that cannot be read is left out.

use std::{collections::BTreeSet, fs, path::Path};

use senesce_core::{Bytes, names::NONE};

fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Parameters of the kernel that change the speed or the order of I/O. The others stay private: a
/// command line can name machines and secrets.
const KERNEL_PARAMETERS: [&str; 13] = [
    "amd_pstate",
    "elevator",
    "idle",
    "intel_idle.max_cstate",
    "intel_pstate",
    "iommu",
    "isolcpus",
    "maxcpus",
    "mitigations",
    "nohz_full",
    "nosmt",
    "preempt",
    "transparent_hugepage",
];

/// Collects kernel, processor, memory, and the queue of `device` if there is one.
pub(crate) fn collect_machine(device: Option<&Path>) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut add = |key: &str, value: Option<String>| found.extend(value.map(|value| (key.to_owned(), value)));
    let uname = rustix::system::uname();
    add("kernel_release", Some(uname.release().to_string_lossy().into_owned()));
    add("kernel_version", Some(uname.version().to_string_lossy().into_owned()));
    add("machine", Some(uname.machine().to_string_lossy().into_owned()));
    add("kernel_parameters", read("/proc/cmdline").map(|line| parse_parameters(&line)));
    add("distribution", read("/etc/os-release").and_then(|text| parse_distribution(&text)));
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let vendor = || read("/sys/class/dmi/id/sys_vendor").unwrap_or_else(|| "unknown vendor".to_owned());
    add("virtual_machine", Some(if parse_is_virtual(&cpuinfo) { vendor() } else { NONE.to_owned() }));
    let (model, count) = parse_cpuinfo(&cpuinfo);
    if let Some(host) = parse_guest(&cpuinfo) {
        add("guest_kind", Some("uml".to_owned()));
        add("guest_host_kernel", Some(host));
    }
    add("cpu_model", model);
    add("cpu_count", (count > 0).then(|| count.to_string()));
    add("cpu_governor", read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
    let meminfo = read("/proc/meminfo").unwrap_or_default();
    add("memory_bytes", parse_memory_total(&meminfo).map(|total| total.0.to_string()));
    if let Some(device) = device {
        add("device", Some(device.display().to_string()));
        if let Ok(queue) = crate::host::queue_dir(device) {
            add("device_rotational", read(queue.join("rotational")));
            add("device_scheduler", read(queue.join("scheduler")).and_then(|text| parse_chosen(&text)));
            add("device_read_ahead_kib", read(queue.join("read_ahead_kb")));
            add("device_logical_block_bytes", read(queue.join("logical_block_size")));
            add("device_physical_block_bytes", read(queue.join("physical_block_size")));
            add("device_max_request_kib", read(queue.join("max_sectors_kb")));
            add("device_model", read(queue.join("../device/model")));
        }
    }
    found
}

fn parse_cpuinfo(text: &str) -> (Option<String>, usize) {
    let values = |key: &'static str| {
        text.lines().filter_map(|line| line.split_once(':')).filter(move |(name, _)| name.trim() == key)
    };
    let models: BTreeSet<&str> = values("model name").map(|(_, value)| value.trim()).collect();
    let model = models.into_iter().collect::<Vec<_>>().join(" + ");
    (Some(model).filter(|model| !model.is_empty()), values("processor").count())
}

/// The parameters of [`KERNEL_PARAMETERS`] in a command line of the kernel. [`NONE`] without one.
fn parse_parameters(line: &str) -> String {
    let is_shown = |word: &&str| KERNEL_PARAMETERS.contains(&word.split('=').next().unwrap_or_default());
    let shown: Vec<&str> = line.split_whitespace().filter(is_shown).collect();
    if shown.is_empty() { NONE.to_owned() } else { shown.join(" ") }
}

/// The name of the distribution in the text of os-release.
fn parse_distribution(text: &str) -> Option<String> {
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

/// Whether the flags of the processor name a hypervisor.
fn parse_is_virtual(cpuinfo: &str) -> bool {
    let mut flags = cpuinfo.lines().filter(|line| line.starts_with("flags"));
    flags.any(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// The kernel of the host, if this is user-mode Linux. It shows it as a field of the processor.
fn parse_guest(text: &str) -> Option<String> {
    let value = |key: &str| {
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        fields.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned())
    };
    value("vendor_id").filter(|vendor| vendor == "User Mode Linux")?;
    value("host")
}

/// Whether this machine is a guest of user-mode Linux.
pub fn is_guest() -> bool {
    read("/proc/cpuinfo").is_some_and(|text| parse_guest(&text).is_some())
}

fn parse_memory_total(text: &str) -> Option<Bytes> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(Bytes(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * Bytes::KIB))
}

/// `none [mq-deadline] kyber` has the chosen scheduler in brackets.
fn parse_chosen(text: &str) -> Option<String> {
    match text.split_once('[').and_then(|(_, rest)| rest.split_once(']')) {
        Some((chosen, _)) => Some(chosen.to_owned()),
        None => Some(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_kernel_are_parsed() {
        let cpus = "processor\t: 0\nmodel name\t: X 1\n\nprocessor\t: 1\nmodel name\t: X 1\n";
        assert_eq!(parse_cpuinfo(cpus), (Some("X 1".to_owned()), 2));
        assert_eq!(parse_cpuinfo(""), (None, 0));
        let uml = "processor\t: 0\nvendor_id\t: User Mode Linux\nhost\t\t: Linux vm 6.18\n";
        assert_eq!((parse_guest(cpus), parse_guest(uml)), (None, Some("Linux vm 6.18".to_owned())));
        assert_eq!(
            parse_parameters("BOOT_IMAGE=/vmlinuz root=/dev/sda1 mitigations=off nosmt secret=x"),
            "mitigations=off nosmt"
        );
        assert_eq!(parse_parameters("root=/dev/sda1"), NONE);
        assert_eq!(parse_distribution("ID=debian\nPRETTY_NAME=\"Debian 12\"\n").as_deref(), Some("Debian 12"));
        assert!(parse_is_virtual("flags\t\t: fpu hypervisor lm\n") && !parse_is_virtual("flags\t\t: fpu lm\n"));
        assert_eq!(parse_memory_total("MemTotal:       24681472 kB\nMemFree: 1 kB"), Some(Bytes(24_681_472 << 10)));
        assert_eq!(parse_chosen("none [mq-deadline] kyber"), Some("mq-deadline".to_owned()));
        assert_eq!(parse_chosen("none"), Some("none".to_owned()));
    }
}
