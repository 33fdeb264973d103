//! How much memory there is, and what fits into it.

/// What cgroups of the first version say where there is no limit is close to this.
const NO_LIMIT: u64 = 1 << 60;

/// How many bytes this process may use: what its cgroup allows, or else what the machine has. Nothing if neither says.
pub fn available_memory() -> Option<u64> {
    available(|path| std::fs::read_to_string(path).ok())
}

fn available(read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let limits = read("/proc/self/cgroup").unwrap_or_default();
    let limits = limits.lines().flat_map(limit_files).filter_map(|file| read(&file)?.trim().parse().ok());
    let limits = limits.filter(|&limit| limit < NO_LIMIT);
    limits.chain(read("/proc/meminfo").and_then(|text| installed(&text))).min()
}

/// The files that may hold a limit for a line of `/proc/self/cgroup`: its own group's and those of all around it. What a
/// container sees of its own group may be the root.
fn limit_files(line: &str) -> Vec<String> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
    let (root, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return vec![],
    };
    let ends = path.char_indices().filter(|(_, letter)| *letter == '/').map(|(at, _)| at);
    let groups = ends.chain([path.len()]).map(|end| &path[..end]);
    groups.map(|group| format!("{root}{group}/{file}")).collect()
}

fn installed(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}

/// Whether a piece of work fits into the memory that it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    Now,
    /// Once something else is done.
    Later,
    Never,
}

/// The memory that work may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) limit: u64,
}

impl Memory {
    pub(crate) fn fit(self, used: u64, need: u64) -> Fit {
        match used.checked_add(need) {
            Some(sum) if sum <= self.limit => Fit::Now,
            _ if need <= self.limit => Fit::Later,
            _ => Fit::Never,
        }
    }

    /// How many more pieces of this size fit. One may always be tried where there is nothing else.
    pub(crate) fn fitting(self, used: u64, need: u64) -> usize {
        let fitting = self.limit.saturating_sub(used) / need.max(1);
        fitting.max(u64::from(used == 0)).try_into().unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine<'a>(files: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |path| files.iter().find(|(known, _)| *known == path).map(|(_, text)| (*text).to_owned())
    }

    const MEMINFO: (&str, &str) = ("/proc/meminfo", "MemTotal:       2048 kB\nMemFree:        1024 kB\n");

    #[test]
    fn the_tightest_group_counts() {
        let second = [
            MEMINFO,
            ("/proc/self/cgroup", "0::/pods/atoll\n"),
            ("/sys/fs/cgroup/pods/atoll/memory.max", "max\n"),
            ("/sys/fs/cgroup/pods/memory.max", "1000000\n"),
        ];
        assert_eq!(available(machine(&second)), Some(1_000_000));
        let first = [
            MEMINFO,
            ("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/x\n"),
            ("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n"),
        ];
        assert_eq!(available(machine(&first)), Some(500_000));
    }

    #[test]
    fn without_a_limit_the_machine_counts() {
        let unlimited = [MEMINFO, ("/proc/self/cgroup", "0::/\n"), ("/sys/fs/cgroup/memory.max", "max")];
        assert_eq!(available(machine(&unlimited)), Some(2 << 20));
        assert_eq!(available(machine(&[])), None);
        assert!(available_memory().is_none_or(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn work_fits_now_later_or_never() {
        let memory = Memory { limit: 100 };
        assert_eq!(memory.fit(0, 100), Fit::Now);
        assert_eq!(memory.fit(1, 100), Fit::Later);
        assert_eq!(memory.fit(0, 101), Fit::Never);
        assert_eq!(memory.fit(u64::MAX, 1), Fit::Later);
        assert_eq!((memory.fitting(0, 30), memory.fitting(50, 30), memory.fitting(80, 30)), (3, 1, 0));
        assert_eq!(memory.fitting(0, 1000), 1, "so that somebody learns that it never fits");
        assert_eq!(memory.fitting(0, 0), 100);
    }
}
