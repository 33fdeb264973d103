//! An experiment that has been checked: nothing that comes later says "invalid experiment".

use crate::document::{self, Diagnostic, Diagnostics, Document};
use crate::duration;
use crate::file::{BudgetKeys, Every, ExperimentFile, Mode, Override, TopologyKey};
use crate::yardstick::YardstickKeys;
use evolution::algorithm::{Algorithm, Survival};
use evolution::codec::MAX_ENCODED;
use evolution::digest::Digest;
use evolution::epoch::Evolver;
use evolution::island::{IslandSetting, MAX_PRIVATE, Setting};
use problems::{ProblemError, ProblemSpec, Traits};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The version of what experiments mean: bumped when the golden digests change, and part of every digest.
pub const SEMANTICS: u32 = 2;

/// The most individuals that all islands of an experiment may hold together.
const MAX_INDIVIDUALS: u64 = 1_000_000_000;

/// A checked experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    file: ExperimentFile,
    setting: Setting,
    traits: Traits,
    budget: Budget,
    checkpoint_every: CheckpointEvery,
    /// Its digest, once it was asked for: of thousands of islands that takes a while.
    digest: OnceLock<Digest>,
}

/// When a run ends: at whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Generations.
    pub generations: Option<u64>,
    /// Evaluations on all islands together.
    pub evaluations: Option<u64>,
    /// When a champion is at least this fit.
    pub target_fitness: Option<f64>,
    /// Generations without a better champion on any island.
    pub stagnation: Option<u64>,
    /// Time of computation.
    pub wall_time: Option<Duration>,
}

/// How much a crash may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckpointEvery {
    /// A number of generations of an island.
    Generations(u64),
    /// A time, but at least one generation.
    Time(Duration),
}

impl Experiment {
    /// Checks a document whose shape was found right. All that is wrong is reported at once.
    pub(crate) fn check(document: &Document, file: ExperimentFile) -> Result<Self, Diagnostics> {
        let mut problems = Findings { document, problems: vec![] };
        let experiment = problems.check(file);
        document.conclude(problems.problems)?;
        Ok(experiment.expect("an experiment without problems was made"))
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// Its seed.
    pub fn seed(&self) -> u64 {
        self.file.seed
    }

    /// The file it was made from, with all defaults filled in.
    pub fn file(&self) -> &ExperimentFile {
        &self.file
    }

    /// Its islands and who sends to whom.
    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// What its problem is like.
    pub fn traits(&self) -> &Traits {
        &self.traits
    }

    /// When its run ends.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Generations between two migrations.
    pub fn interval(&self) -> u64 {
        self.file.migration.interval
    }

    /// Whether islands wait for their neighbours.
    pub fn mode(&self) -> Mode {
        self.file.migration.mode
    }

    /// How much a crash may cost.
    pub fn checkpoint_every(&self) -> CheckpointEvery {
        self.checkpoint_every
    }

    /// The same experiment with another seed.
    pub fn with_seed(&self, seed: u64) -> Self {
        let mut other = Self { digest: OnceLock::new(), ..self.clone() };
        other.file.seed = seed;
        other.setting.seed = seed;
        let topology = other.file.islands.topology.topology();
        other.setting.edges =
            topology.edges(other.file.islands.count, seed).expect("the topology fits with any seed");
        other
    }

    /// The same experiment with another budget.
    pub fn with_budget(&self, budget: BudgetKeys) -> Result<Self, Diagnostics> {
        // What fell over the old budget's generations has been resolved, so that the past stays as it was.
        let file = ExperimentFile { budget, ..self.file.clone() };
        let text = toml::to_string_pretty(&file).expect("every experiment can be written as TOML");
        Self::check(&document::parse("the new budget", &text)?, file)
    }

    /// The same experiment with guests at its founding.
    pub fn with_guests(&self, guests: Digest) -> Self {
        let mut other = Self { digest: OnceLock::new(), ..self.clone() };
        other.file.guests = Some(guests.to_string());
        other
    }

    /// What evolves its islands.
    pub fn evolver(&self) -> Arc<dyn Evolver> {
        self.file.problem.evolver(self.setting.clone()).expect("the problem was posed when it was checked")
    }

    /// Computes what all evaluations share, so that none of them has to wait for it.
    pub fn prepare(&self) {
        self.file.problem.prepare();
    }

    /// The experiment as text, from which it can be read again.
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.file).expect("every experiment can be written as TOML")
    }

    /// The digest of all keys that affect results. Its name, its budget and what it stores do not.
    pub fn digest(&self) -> Digest {
        *self.digest.get_or_init(|| self.computed_digest())
    }

    fn computed_digest(&self) -> Digest {
        let canonical = serde_json::json!({
            "semantics": SEMANTICS,
            "problem": self.file.problem,
            "setting": self.setting,
            "interval": self.interval(),
            "mode": self.mode(),
            "guests": self.file.guests,
        });
        Digest::of_parts("atoll experiment", [canonical.to_string().as_bytes()])
    }

    /// The name of its run: the same experiment, seed and budget always have the same.
    pub fn run_id(&self) -> String {
        let budget = serde_json::json!(self.file.budget).to_string();
        let digest = Digest::of_parts("atoll run", [&self.digest().0[..], budget.as_bytes()]);
        format!("{}-{}", self.file.name, &digest.to_string()[..8])
    }
}

/// Whether a plan may have this name.
pub(crate) fn allowed_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    name.chars().all(allowed) && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// What no schema can state about single keys, of a document whose schema finds other keys wrong.
pub(crate) fn problems_of_single_keys(document: &Document, known: &[Diagnostic]) -> Vec<Diagnostic> {
    let is_fine = |key: &str| !known.iter().any(|problem| problem.key == key);
    let value = |key: &str| is_fine(key).then(|| document.get(&crate::key(key))).flatten();
    let text = |key: &str| value(key).and_then(|value| value.as_str().map(str::to_owned));
    let mut findings = Findings { document, problems: vec![] };
    if let Some(name) = text("name") {
        findings.check_name(&name);
    }
    for key in ["budget.wall_time", "checkpoint.every"] {
        if let Some(time) = text(key) {
            findings.duration(key, &time);
        }
    }
    if let Some(Ok(keys)) = value("budget").map(serde_json::from_value) {
        findings.check_limits(&keys);
    }
    findings.problems
}

/// What is found wrong while an experiment is checked.
struct Findings<'a> {
    document: &'a Document,
    problems: Vec<Diagnostic>,
}

impl Findings<'_> {
    fn add(&mut self, key: &str, message: impl AsRef<str>, help: Option<&str>) {
        self.problems.push(self.document.problem(key, message, help));
    }

    fn check(&mut self, mut file: ExperimentFile) -> Option<Experiment> {
        self.check_name(&file.name);
        self.check_rates(&mut file);
        let budget = self.budget(&file);
        let checkpoint_every = self.checkpoint_every(&file);
        self.check_overrides(&file);
        self.check_yardstick(&file);
        let traits = self.traits(&file);
        let setting = self.setting(&file)?;
        if let Some(traits) = &traits {
            self.check_islands(&file, &setting, traits);
            self.check_league(&file, &setting, traits);
            self.check_relative(&file, traits);
        }
        Some(Experiment {
            setting,
            traits: traits?,
            budget: budget?,
            checkpoint_every: checkpoint_every?,
            file,
            digest: OnceLock::new(),
        })
    }

    fn check_name(&mut self, name: &str) {
        if !allowed_name(name) {
            let message = format!("expected lowercase letters, digits, `-`, `_` and `.`, found `{name}`");
            self.add("name", message, Some("the name becomes part of the run's name and of its folder"));
        }
    }

    /// A falling rate falls over the whole run unless it says otherwise.
    fn check_rates(&mut self, file: &mut ExperimentFile) {
        let generations = file.budget.generations;
        file.algorithm.resolve_rates(generations);
        let mut open = file.algorithm.has_open_rate().then_some("algorithm.mutation.rate".to_owned());
        for (at, other) in file.islands.overrides.iter_mut().enumerate() {
            if let Some(algorithm) = &mut other.algorithm {
                algorithm.resolve_rates(generations);
                let key = format!("islands.override[{at}].algorithm.mutation.rate");
                open = open.or(algorithm.has_open_rate().then_some(key));
            }
        }
        if let Some(key) = open {
            let message = "expected `over`, the generations over which the rate falls, found neither it nor \
                           `budget.generations`";
            self.add(&key, message, Some("write `{ from = …, to = …, over = … }`"));
        }
    }

    fn budget(&mut self, file: &ExperimentFile) -> Option<Budget> {
        let keys = &file.budget;
        let wall_time = keys.wall_time.as_deref().map(|text| self.duration("budget.wall_time", text));
        let budget = Budget {
            generations: keys.generations,
            evaluations: keys.evaluations,
            target_fitness: keys.target_fitness,
            stagnation: keys.stagnation,
            wall_time: wall_time.flatten(),
        };
        self.check_limits(keys).then_some(budget)
    }

    /// Whether a budget names a limit. One that a run may never reach is a problem too.
    fn check_limits(&mut self, keys: &BudgetKeys) -> bool {
        if *keys == BudgetKeys::default() {
            let message = "expected at least one of `generations`, `evaluations`, `target_fitness`, `stagnation` \
                           and `wall_time`, found none";
            self.add("budget", message, Some("without a budget the run would never end"));
            return false;
        }
        let certain = keys.generations.is_some() || keys.evaluations.is_some() || keys.wall_time.is_some();
        if !certain && keys.stagnation.is_none() {
            let message = "expected another limit beside `target_fitness`, such as `generations`, found none";
            self.add(
                "budget.target_fitness",
                message,
                Some("add `generations`, `wall_time` or `stagnation`"),
            );
        }
        true
    }

    fn checkpoint_every(&mut self, file: &ExperimentFile) -> Option<CheckpointEvery> {
        match &file.checkpoint.every {
            Every::Generations(generations) => Some(CheckpointEvery::Generations(*generations)),
            Every::Time(text) => self.duration("checkpoint.every", text).map(CheckpointEvery::Time),
        }
    }

    fn duration(&mut self, key: &str, text: &str) -> Option<Duration> {
        match duration::parse(text) {
            Ok(duration) => Some(duration),
            Err(error) => {
                self.add(key, error.to_string(), None);
                None
            }
        }
    }

    fn check_overrides(&mut self, file: &ExperimentFile) {
        let count = file.islands.count;
        let mut taken = vec![false; count as usize];
        for (at, Override { islands, .. }) in file.islands.overrides.iter().enumerate() {
            for (place, &island) in islands.iter().enumerate() {
                let key = format!("islands.override[{at}].islands[{place}]");
                match taken.get_mut(island as usize) {
                    None => {
                        self.add(
                            &key,
                            format!("expected an island from 0 to {}, found `{island}`", count - 1),
                            None,
                        );
                    }
                    Some(true) => {
                        let message = format!("expected each island in one override, found `{island}` again");
                        self.add(&key, message, None);
                    }
                    Some(taken) => *taken = true,
                }
            }
        }
    }

    /// Whether there are champions that can be measured, and opponents to measure them by.
    fn check_yardstick(&mut self, file: &ExperimentFile) {
        let Some(keys) = &file.yardstick else { return };
        if !matches!(file.problem, ProblemSpec::Checkers(_)) {
            let message = "expected a problem whose champions play, found none";
            self.add("yardstick", message, Some("only champions of `checkers` can be measured"));
        }
        if file.retention.milestones.is_none() {
            let message = "expected milestones to be measured, found none";
            self.add("yardstick", message, Some("set `milestones = 10` in [retention]"));
        }
        if keys.depth.is_some() && keys.nodes.is_some() {
            let message = "expected either `depth` or `nodes`, found both";
            self.add("yardstick.nodes", message, None);
        }
        for (at, name) in keys.opponents.iter().enumerate() {
            let key = format!("yardstick.opponents[{at}]");
            if !keys.is_opponent(name) {
                let own = YardstickKeys { opponents: vec![], ..keys.clone() }.opponents();
                let message = format!("expected an opponent such as `{}`, found `{name}`", own[0]);
                let help = "with `nodes` opponents are named without plies; `atoll bench strength` prints their names";
                self.add(&key, message, Some(help));
            } else if keys.opponents[..at].contains(name) {
                self.add(&key, format!("expected each opponent once, found `{name}` again"), None);
            }
        }
    }

    fn traits(&mut self, file: &ExperimentFile) -> Option<Traits> {
        match file.problem.traits() {
            Ok(traits) => Some(traits),
            Err(ProblemError { key, message }) => {
                self.add(&key, message, None);
                None
            }
        }
    }

    fn setting(&mut self, file: &ExperimentFile) -> Option<Setting> {
        let policy = file.migration.policy();
        let common =
            IslandSetting { algorithm: file.algorithm.clone(), policy: policy.clone(), exploits: false };
        let mut islands = vec![common; file.islands.count as usize];
        for Override { islands: which, algorithm, migration, exploits } in &file.islands.overrides {
            for &island in which {
                let Some(island) = islands.get_mut(island as usize) else { continue };
                island.algorithm = algorithm.clone().unwrap_or_else(|| file.algorithm.clone());
                island.policy = migration.clone().unwrap_or_default().over(&policy);
                island.exploits = *exploits;
            }
        }
        let mut edges = |key: &str, topology: &TopologyKey| {
            let edges = topology.topology().edges(file.islands.count, file.seed);
            edges.map_err(|error| self.add(key, error.to_string(), None)).ok()
        };
        let migrants = edges("islands.topology", &file.islands.topology);
        let opponents =
            file.islands.league.as_ref().map_or(Some(vec![]), |league| edges("islands.league", league));
        Some(Setting { seed: file.seed, islands, edges: migrants?, opponents: opponents? })
    }

    /// Whether opponents that are sent are met, and by islands that can hold them.
    fn check_league(&mut self, file: &ExperimentFile, setting: &Setting, traits: &Traits) {
        if file.islands.league.is_some() && traits.opponents == 0 {
            let message = "expected a problem that plays against former champions, found none that does";
            let help = "give `checkers` a hall of fame: `hall_of_fame = { size = 10, games = 2 }`";
            self.add("islands.league", message, Some(help));
        }
        for (at, other) in file.islands.overrides.iter().enumerate().filter(|(_, other)| other.exploits) {
            let receives = |island: &u32| setting.opponents.iter().any(|edge| edge.to == *island);
            if let Some(island) = other.islands.iter().find(|island| !receives(island)) {
                let message = format!("expected islands that opponents are sent to, found `{island}`");
                let help = "set `league = \"fully-connected\"` in [islands]";
                self.add(&format!("islands.override[{at}].exploits"), message, Some(help));
            }
        }
        let most = (0..file.islands.count).map(|island| setting.opponents_senders(island)).max();
        let bytes = most.unwrap_or(0) as u128 * u128::from(traits.opponents) * (traits.bytes + 64) as u128;
        if bytes > MAX_ENCODED as u128 {
            let message = format!(
                "expected at most {} MiB of opponents for an island, found up to {} MiB",
                MAX_ENCODED >> 20,
                bytes >> 20
            );
            self.add(
                "islands.league",
                message,
                Some("choose a topology with fewer edges, or a smaller hall of fame"),
            );
        }
    }

    fn check_islands(&mut self, file: &ExperimentFile, setting: &Setting, traits: &Traits) {
        let places =
            std::iter::once((0, String::new())).chain(file.islands.overrides.iter().enumerate().filter_map(
                |(at, other)| Some((*other.islands.first()? as usize, format!("islands.override[{at}]."))),
            ));
        // One island stands for all that are alike: the first without an override, and the first of each.
        let overridden = |island: u32| file.islands.overrides.iter().any(|o| o.islands.contains(&island));
        let plain = (0..file.islands.count).find(|&island| !overridden(island));
        for (island, prefix) in places {
            let island = if prefix.is_empty() { plain.map(|island| island as usize) } else { Some(island) };
            if let Some(own) = island.and_then(|island| setting.islands.get(island)) {
                self.check_island(&prefix, own, setting.edges.is_empty(), traits);
            }
        }
        let capacities = setting.islands.iter().map(|island| island.algorithm.capacity());
        let everybody = capacities.fold(0, u64::saturating_add);
        if everybody > MAX_INDIVIDUALS {
            let message =
                format!("expected at most {MAX_INDIVIDUALS} individuals on all islands, found {everybody}");
            self.add("islands.count", message, None);
        }
    }

    /// Fitness that is relative says nothing about how far evolution has come.
    fn check_relative(&mut self, file: &ExperimentFile, traits: &Traits) {
        let BudgetKeys { target_fitness, stagnation, .. } = file.budget;
        for (key, given) in
            [("target_fitness", target_fitness.is_some()), ("stagnation", stagnation.is_some())]
        {
            if given && !traits.absolute {
                let message = format!("expected a budget for relative fitness, found `{key}`");
                let help = "fitness among changing opponents does not rise: use `generations` or `wall_time`";
                self.add(&format!("budget.{key}"), message, Some(help));
            }
        }
    }

    /// Where the problem makes the children, whatever is said about how an algorithm makes them has no effect.
    fn check_operators(&mut self, prefix: &str, algorithm: &Algorithm) {
        let help = Some("leave it out, or the problem's `operators`");
        let plain = algorithm.plain();
        let Some(((crossover, mutation), usual)) = algorithm.variation().zip(plain.variation()) else {
            let message = "expected an algorithm for a problem with its own `operators`, found `es`";
            return self.add(
                &format!("{prefix}algorithm.kind"),
                message,
                Some("use `ga`, `crowding` or `map-elites`"),
            );
        };
        for (key, is_usual) in [("crossover", crossover == usual.0), ("mutation", mutation == usual.1)] {
            if !is_usual {
                let message = format!("expected children by the problem's own `operators`, found `{key}`");
                self.add(&format!("{prefix}algorithm.{key}"), message, help);
            }
        }
    }

    fn check_island(&mut self, prefix: &str, own: &IslandSetting, isolated: bool, traits: &Traits) {
        let IslandSetting { algorithm, policy, .. } = own;
        if traits.breeding.is_some() {
            self.check_operators(prefix, algorithm);
        }
        match algorithm {
            strategy if strategy.needs_numbers() && !traits.real => {
                let message = format!(
                    "expected an algorithm for symbols, found `{}`, which needs real genes",
                    strategy.name()
                );
                self.add(
                    &format!("{prefix}algorithm.kind"),
                    message,
                    Some("use `ga`, `crowding` or `map-elites`"),
                );
            }
            Algorithm::MapElites(_) if !traits.absolute => {
                let message = "expected an algorithm for relative fitness, found `map-elites`, whose archive compares \
                               individuals of different generations";
                self.add(&format!("{prefix}algorithm.kind"), message, Some("use `ga`, `es` or `crowding`"));
            }
            Algorithm::MapElites(archive) if archive.bins.len() != traits.axes.len() => {
                let names: Vec<&str> = traits.axes.iter().map(|axis| axis.name).collect();
                let message = format!(
                    "expected a number of bins for each of the problem's {} axes ({}), found {}",
                    names.len(),
                    names.join(", "),
                    archive.bins.len()
                );
                self.add(&format!("{prefix}algorithm.bins"), message, None);
            }
            Algorithm::Es(es) if es.survival == Survival::Comma && es.offspring < es.parents => {
                let message = format!("expected at least {} children, found `{}`", es.parents, es.offspring);
                let help = "where only children survive, there must be as many as parents";
                self.add(&format!("{prefix}algorithm.offspring"), message, Some(help));
            }
            Algorithm::SepCma(cma) | Algorithm::LmMa(cma) if cma.offspring < cma.parents => {
                let message =
                    format!("expected at least {} children, found `{}`", cma.parents, cma.offspring);
                let help = "the parents of a generation are the best children of the one before";
                self.add(&format!("{prefix}algorithm.offspring"), message, Some(help));
            }
            _ => {}
        }
        let private = algorithm.private_bytes(traits.length) + traits.memory;
        if private > MAX_PRIVATE as u64 {
            let message = format!(
                "expected an island that remembers at most {} MiB beside its individuals, found {} MiB",
                MAX_PRIVATE >> 20,
                private >> 20
            );
            self.add(&format!("{prefix}algorithm"), message, Some("`sep-cma` remembers less than `lm-ma`"));
        }
        if traits.needs_step && algorithm.variation().is_some_and(|(_, mutation)| mutation.step.is_none()) {
            let message = "expected the size of a mutation's step, found none";
            let help = "add `step`, such as `mutation = { rate = 0.01, per = \"gene\", step = 0.1 }`";
            self.add(&format!("{prefix}algorithm.mutation"), message, Some(help));
        }
        let founders = algorithm.founders();
        if !isolated && policy.count > founders {
            let message =
                format!("expected at most {founders}, the size of an island, found `{}`", policy.count);
            self.add(
                &format!("{prefix}migration.count"),
                message,
                Some("an individual can emigrate only once per migration"),
            );
        }
        // Step sizes take another four bytes for each gene.
        let bytes = u128::from(algorithm.crowd()) * (traits.bytes + 4 * traits.length + 64) as u128;
        if bytes > MAX_ENCODED as u128 {
            let message = format!(
                "expected an island of at most {} MiB, found one that may take {} MiB",
                MAX_ENCODED >> 20,
                bytes >> 20
            );
            self.add(&format!("{prefix}algorithm"), message, Some("use more and smaller islands"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;

    #[test]
    fn a_digest_that_is_remembered_is_that_of_the_experiment_as_it_is() {
        let text = "name = \"a\"\nproblem = { kind = \"onemax\", length = 8 }\n\
                    algorithm = { kind = \"ga\", population = 4 }\nbudget = { generations = 2 }";
        let experiment = |seed: u64| match crate::parse("a.toml", &format!("seed = {seed}\n{text}"), None) {
            Ok(Plan::Single(experiment)) => *experiment,
            other => panic!("{other:?}"),
        };
        let one = experiment(1);
        let digest = one.digest();
        assert_eq!(one.with_seed(2).digest(), experiment(2).digest());
        assert_ne!(one.with_guests(Digest::of(b"guests")).digest(), digest);
        assert_eq!(one.digest(), digest);
    }
}
