//! Whether the coordinator has memory for computing something itself.

/// Memory that is left to everything else.
const SPARED: u64 = 32 << 20;

/// Why a piece of about this size in bytes is not computed here, if there is no memory for it.
pub(super) fn check(need: u64) -> Result<(), String> {
    match free(|path| std::fs::read_to_string(path).ok()) {
        Some(free) if need.saturating_add(SPARED) > free => Err(format!(
            "it takes about {} MiB of memory, and the coordinator has {} MiB left",
            need.div_ceil(1 << 20),
            free >> 20
        )),
        _ => Ok(()),
    }
}

/// How many bytes are free: in the control group of a container, and on the machine. Nothing if neither says.
fn free(read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let number = |path: &str| read(path)?.trim().parse::<u64>().ok();
    let left = |limit: &str, used: &str| number(limit)?.checked_sub(number(used)?);
    let group = left("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current").or_else(|| {
        let folder = "/sys/fs/cgroup/memory";
        left(&format!("{folder}/memory.limit_in_bytes"), &format!("{folder}/memory.usage_in_bytes"))
    });
    let machine = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
    });
    group.into_iter().chain(machine).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_that_is_free_counts() {
        let files = [
            ("/proc/meminfo", "MemTotal:       4096 kB\nMemAvailable:    2048 kB\n"),
            ("/sys/fs/cgroup/memory.max", "1000000\n"),
            ("/sys/fs/cgroup/memory.current", "400000\n"),
        ];
        let machine = |known: &[(&str, &str)]| {
            let known: Vec<(String, String)> =
                known.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
            move |path: &str| known.iter().find(|(known, _)| known == path).map(|(_, text)| text.clone())
        };
        assert_eq!(free(machine(&files)), Some(600_000));
        assert_eq!(free(machine(&files[..1])), Some(2 << 20));
        assert_eq!(free(machine(&[])), None);
        assert!(check(u64::MAX).is_err() || free(|path| std::fs::read_to_string(path).ok()).is_none());
        assert!(check(1).is_ok(), "there is some memory");
    }
}
