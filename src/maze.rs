//! `atoll maze`: boards of the number-collecting maze printed and solved.

use crate::terminal::{message, out, write_out};
use archipelago::solo;
use bench::process_cpu_seconds;
use evolution::epoch::ChampionView;
use experiment::document::{Diagnostics, explain};
use experiment::file::BudgetKeys;
use experiment::{Experiment, Plan};
use maze::{
    Board, BoundError, Chokudai, Direction, Exact, Goal, Horizon, MAX_BOARD_BYTES, MersenneTwister,
    Objective, SearchError, Solution, Turns,
};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Solve one board
    Solve(Solve),
    /// Print or draw one board
    Board(Show),
}

/// Which board: from a file, or drawn from a seed.
#[derive(clap::Args)]
struct Source {
    /// Read the board from this file, as text or JSON (`-`: standard input)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["width", "height", "seed", "walls"])]
    board: Option<PathBuf>,
    /// Columns
    #[arg(long, default_value_t = 10)]
    width: usize,
    /// Rows
    #[arg(long, default_value_t = 10)]
    height: usize,
    /// Seed of the board
    #[arg(long, default_value_t = 0)]
    seed: u32,
    /// Percentage of cells that become walls
    #[arg(long, value_name = "PERCENT", default_value_t = 0)]
    walls: u8,
}

#[derive(clap::Args)]
struct Solve {
    #[command(flatten)]
    source: Source,
    /// Turns of the game
    #[arg(long)]
    turns: usize,
    /// What the game asks for: `points` (the most in all turns), `order:1,2,3,4` (numbers in this order), `sum:30`
    /// (an exact sum) or `all` (every number); the last three in the fewest moves
    #[arg(long, default_value = "points")]
    goal: Goal,
    /// How to solve it
    #[arg(long, value_enum)]
    algorithm: Algorithm,
    #[command(flatten)]
    options: Options,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Also draw the path as SVG to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Algorithm {
    /// Possible moves at random
    Random,
    /// The best next move
    Greedy,
    /// Beam search, by default with the settings of the study
    Beam,
    /// Chokudai search, by default with the settings of the study
    Chokudai,
    /// The study's genetic algorithm; steps over the edge become the nearest possible ones
    GaR1,
    /// Like ga-r1; a path with a step over the edge gets the worst fitness
    GaR2,
    /// Like ga-r1; steps over the edge become random possible ones
    GaR3,
    /// The study's enhanced genetic algorithm: half of its first paths are greedy, and an elite is carried over
    Enhanced,
    /// Islands of paths under crowding, with path-aware operators
    Hybrid,
    /// The optimum with a proof, or an upper bound
    Exact,
}

impl Algorithm {
    /// The keys of an experiment that tell the genetic ones apart.
    fn keys(self, turns: usize) -> Option<String> {
        let plain = "crossover = { kind = \"one-point\", rate = 0.7 }, mutation = { rate = 0.1 }";
        let enhanced = "crossover = { kind = \"two-point\", rate = 0.7 }, \
                        mutation = { rate = { from = 0.3, to = 0.05 } }, elite = 0.2";
        let founders = "founders = { kind = \"greedy\", share = 0.5, random_ties = true }";
        // The study's: 40 individuals and 20 generations for each turn.
        let study = |problem: &str, algorithm: &str| {
            let (population, generations) = (40 * turns, 20 * turns);
            Some(format!(
                "problem.{problem}\nislands.count = 1\nbudget.generations = {generations}\n\
                 algorithm = {{ kind = \"ga\", population = {population}, {algorithm} }}\n"
            ))
        };
        match self {
            Self::GaR1 => study("repair = \"nearest\"", plain),
            Self::GaR2 => study("repair = \"worst\"", plain),
            Self::GaR3 => study("repair = \"random\"", plain),
            Self::Enhanced => study(founders, enhanced),
            Self::Hybrid => Some(format!(
                "problem.{founders}\nproblem.operators.kind = \"path\"\n\
                 islands.count = 2\nmigration = {{ interval = 10, count = 1 }}\nbudget.generations = {0}\n\
                 algorithm = {{ kind = \"crowding\", population = {0}, distinct = true }}\n",
                2 * turns
            )),
            _ => None,
        }
    }
}

/// What concerns single algorithms; each has its own defaults.
#[derive(clap::Args)]
struct Options {
    /// beam, chokudai: states expanded in each turn
    #[arg(long, value_name = "STATES", default_value_t = 2)]
    beam_width: usize,
    /// chokudai: number of beams
    #[arg(long, default_value_t = 2)]
    beams: usize,
    /// beam, chokudai: search once instead of before every move
    #[arg(long)]
    plan_once: bool,
    /// beam, chokudai: enter equal states only once
    #[arg(long)]
    distinct: bool,
    /// beam, chokudai: look ahead to the end of the game (`remaining`) or the full length (`full`) [default: full for beam,
    /// remaining for chokudai]
    #[arg(long, value_enum)]
    horizon: Option<HorizonName>,
    /// random, ga-r1, ga-r2, ga-r3, enhanced, hybrid: seed of everything random
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    random_seed: u32,
    /// exact: states expanded at most
    #[arg(long, value_name = "STATES", default_value_t = Exact::default().max_states)]
    max_states: u64,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum HorizonName {
    Full,
    Remaining,
}

#[derive(clap::Args)]
struct Show {
    #[command(flatten)]
    source: Source,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    /// A character for each cell; can be read back
    Text,
    /// JSON; can be read back
    Json,
    /// A drawing in text
    Drawing,
    /// A picture
    Svg,
}

/// What went wrong, and the exit code it deserves.
struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    const USAGE: u8 = 2;
    const BAD_FILE: u8 = 78;

    fn usage(error: &dyn std::error::Error) -> Self {
        Self { message: error.to_string(), code: Self::USAGE }
    }

    fn file(path: &Path, error: impl std::fmt::Display) -> Self {
        Self { message: format!("{}: {error}", path.display()), code: Self::BAD_FILE }
    }
}

impl From<SearchError> for Failure {
    fn from(error: SearchError) -> Self {
        Self::usage(&error)
    }
}

impl From<BoundError> for Failure {
    fn from(error: BoundError) -> Self {
        Self::usage(&error)
    }
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let done = match &arguments.command {
        Command::Solve(solve) => solve.run(),
        Command::Board(show) => show.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            message!("error: {}", failure.message);
            ExitCode::from(failure.code)
        }
    }
}

impl Source {
    fn load(&self) -> Result<Board, Failure> {
        match &self.board {
            Some(path) => {
                let unreadable = |error| Failure { message: explain(path, error), code: Failure::BAD_FILE };
                let text = read_limited(path).map_err(unreadable)?;
                Board::read(&text).map_err(|error| Failure::file(path, error))
            }
            None => Board::generate_walled(self.width, self.height, self.seed, self.walls)
                .map_err(|error| Failure::usage(&error)),
        }
    }
}

/// Reads no more than shows that a file is too long for a board.
fn read_limited(path: &Path) -> io::Result<String> {
    let source: Box<dyn Read> =
        if path.as_os_str() == "-" { Box::new(io::stdin()) } else { Box::new(File::open(path)?) };
    let mut text = String::new();
    source.take(MAX_BOARD_BYTES as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

impl Show {
    fn run(&self) -> Result<(), Failure> {
        let board = self.source.load()?;
        let no_path = "the empty path is possible everywhere";
        match self.format {
            Format::Text => write_out!("{board}"),
            Format::Json => out!("{}", board.to_json()),
            Format::Drawing => write_out!("{}", board.draw(&[]).expect(no_path)),
            Format::Svg => write_out!("{}", board.to_svg(&[]).expect(no_path)),
        }
        Ok(())
    }
}

/// What solving a board came to.
struct Answer {
    objective: Objective,
    solution: Solution,
    cpu_seconds: f64,
    /// What the best of the founders collects, where paths were evolved and it could be walked.
    first_score: Option<u32>,
}

impl Solve {
    fn run(&self) -> Result<(), Failure> {
        let board = self.source.load()?;
        let answer = self.answer(&board)?;
        if let Some(path) = &self.svg {
            let svg = board.to_svg(&answer.solution.path).expect("solvers give possible paths");
            std::fs::write(path, svg)
                .map_err(|error| Failure { message: format!("{}: {error}", path.display()), code: 1 })?;
        }
        if self.json {
            out!("{}", self.to_json(&board, &answer));
        } else {
            print_answer(&board, &answer);
        }
        Ok(())
    }

    fn answer(&self, board: &Board) -> Result<Answer, Failure> {
        let turns = Turns::new(self.turns).map_err(|error| Failure::usage(&error))?;
        let start = process_cpu_seconds();
        let objective = Objective::new(&self.goal, board, turns).map_err(|error| Failure::usage(&error))?;
        let Some(keys) = self.algorithm.keys(self.turns) else {
            let solution = self.options.solve(self.algorithm, board, turns, &objective)?;
            let cpu_seconds = process_cpu_seconds() - start;
            return Ok(Answer { objective, solution, cpu_seconds, first_score: None });
        };
        let keys = format!("{keys}{}", goal_keys(&self.goal));
        let experiment = experiment(board, turns, &keys, self.options.random_seed).map_err(|report| {
            // The experiment was generated here: its lines and keys mean nothing to the user.
            let reason = report.problems.first().map_or(String::new(), |problem| problem.message.clone());
            let algorithm = clap::ValueEnum::to_possible_value(&self.algorithm);
            let algorithm = algorithm.map_or(String::new(), |value| value.get_name().to_owned());
            let message = format!("--turns {} is too long for --algorithm {algorithm}: {reason}", self.turns);
            Failure { message, code: Failure::USAGE }
        })?;
        let evolved = evolve(&experiment)?;
        let cpu_seconds = process_cpu_seconds() - start;
        let evaluations = evolved.evaluations;
        let solution = evolved.path(board, &objective).ok_or_else(|| {
            let message =
                format!("expected a path without a step over the edge, found none in {evaluations}");
            Failure { message, code: 1 }
        })?;
        let nothing = BudgetKeys { generations: Some(0), ..BudgetKeys::default() };
        let founding = experiment.with_budget(nothing).map_err(|error| Failure::usage(&error))?;
        let first_score = evolve(&founding)?.path(board, &objective).map(|first| first.score);
        Ok(Answer { objective, solution, cpu_seconds, first_score })
    }

    fn to_json(&self, board: &Board, answer: &Answer) -> serde_json::Value {
        let Answer { objective, solution, cpu_seconds, first_score } = answer;
        let algorithm = clap::ValueEnum::to_possible_value(&self.algorithm);
        let mut object = serde_json::json!({
            "algorithm": algorithm.map(|value| value.get_name().to_owned()),
            "width": board.width(),
            "height": board.height(),
            "turns": self.turns,
            "score": solution.score,
            "first_score": first_score,
            "path": solution.letters(),
            "proved": solution.is_proved(),
            "bound": solution.bound,
            "evaluations": solution.evaluations,
            "cpu_seconds": cpu_seconds,
        });
        if let Some(needed) = objective.needed() {
            let outcome = objective.judge(board, &solution.path).expect("solvers give possible paths");
            object["goal"] = self.goal.to_string().into();
            object["collected"] = outcome.progress.into();
            object["needed"] = needed.into();
            object["reached"] = outcome.reached.into();
            object["moves"] = outcome.moves.into();
        }
        object
    }
}

/// The goal as keys of an experiment.
fn goal_keys(goal: &Goal) -> String {
    match goal {
        Goal::Points => String::new(),
        Goal::All => "problem.goal.kind = \"all\"\n".to_owned(),
        Goal::Sum { sum } => format!("problem.goal = {{ kind = \"sum\", sum = {sum} }}\n"),
        Goal::Order { numbers } => {
            format!("problem.goal = {{ kind = \"order\", numbers = {numbers:?} }}\n")
        }
    }
}

/// The experiment that evolves the paths of a board, with these keys of its own.
fn experiment(board: &Board, turns: Turns, keys: &str, seed: u32) -> Result<Experiment, Diagnostics> {
    let text = format!(
        "name = \"maze\"\nproblem.kind = \"maze\"\nproblem.board = {:?}\nproblem.turns = {}\n{keys}",
        board.to_string(),
        turns.count()
    );
    match experiment::parse("maze", &text, Some(u64::from(seed)))? {
        Plan::Single(experiment) => Ok(*experiment),
        _ => unreachable!("there is neither a sweep nor a study in it"),
    }
}

/// What an evolution came to.
struct Evolved {
    champion: ChampionView,
    evaluations: u64,
}

fn evolve(experiment: &Experiment) -> Result<Evolved, Failure> {
    let outcome = solo::evolve(experiment, || false).map_err(|error| Failure::usage(&error))?;
    let islands = outcome.expect("nobody asks it to stop").islands;
    let (best, _) =
        islands.iter().min_by(|(_, a), (_, b)| b.best.total_cmp(&a.best)).expect("there are islands");
    let champion = experiment.evolver().champion(best).map_err(|error| Failure::usage(&error))?;
    Ok(Evolved { champion, evaluations: islands.iter().map(|(_, standing)| standing.evaluations).sum() })
}

impl Evolved {
    /// The best path, unless all lead over the edge and none is repaired.
    fn path(&self, board: &Board, objective: &Objective) -> Option<Solution> {
        let mut path: Vec<Direction> =
            self.champion.genome.iter().map(|&gene| Direction::from_gene(gene as u8)).collect();
        if objective.needed().is_some() {
            // What comes after the last number that counts is no part of the answer.
            path.truncate(objective.judge(board, &path).ok()?.moves);
        }
        let score = self.champion.fitness as u32;
        let solution = Solution { path, score, bound: None, evaluations: self.evaluations };
        (self.champion.fitness >= 0.0).then_some(solution)
    }
}

fn print_answer(board: &Board, answer: &Answer) {
    let solution = &answer.solution;
    let standing = match solution.bound {
        _ if solution.is_proved() => "proved optimal".to_owned(),
        Some(bound) => format!("no path exceeds {bound}"),
        None => "not proved".to_owned(),
    };
    out!("score        {} ({standing})", solution.score);
    if let Some(needed) = answer.objective.needed() {
        let outcome = answer.objective.judge(board, &solution.path).expect("solvers give possible paths");
        let what = if matches!(answer.objective.goal(), Goal::Sum { .. }) { "points" } else { "numbers" };
        let reached = if outcome.reached { "goal reached" } else { "goal not reached" };
        out!("collected    {} of {needed} {what} in {} moves ({reached})", outcome.progress, outcome.moves);
    }
    if let Some(first) = answer.first_score {
        out!("founders     {first}");
    }
    out!("path         {}", solution.letters());
    out!("evaluations  {}", solution.evaluations);
    out!("cpu seconds  {:.6}", answer.cpu_seconds);
    write_out!("{}", board.draw(&solution.path).expect("solvers give possible paths"));
}

impl Options {
    fn solve(
        &self,
        algorithm: Algorithm,
        board: &Board,
        turns: Turns,
        objective: &Objective,
    ) -> Result<Solution, Failure> {
        let is_plain = objective.goal().is_points();
        Ok(match algorithm {
            Algorithm::Random if is_plain => maze::random(board, turns, self.source()),
            Algorithm::Random => maze::random_for(board, objective, self.source()),
            Algorithm::Greedy if is_plain => maze::greedy(board, turns),
            Algorithm::Greedy => maze::greedy_for(board, objective),
            Algorithm::Beam => {
                self.search(Chokudai::beam(self.beam_width)).solve_for(board, turns, objective)?
            }
            Algorithm::Chokudai => {
                let search = Chokudai { width: self.beam_width, beams: self.beams, ..Chokudai::default() };
                self.search(search).solve_for(board, turns, objective)?
            }
            Algorithm::GaR1 | Algorithm::GaR2 | Algorithm::GaR3 | Algorithm::Enhanced | Algorithm::Hybrid => {
                unreachable!("genetic algorithms are evolved")
            }
            Algorithm::Exact => Exact { max_states: self.max_states, ..Exact::default() }
                .solve_for(board, turns, objective)?,
        })
    }

    fn search(&self, search: Chokudai) -> Chokudai {
        let horizon = match self.horizon {
            Some(HorizonName::Full) => Horizon::Full,
            Some(HorizonName::Remaining) => Horizon::Remaining,
            None => search.horizon,
        };
        Chokudai { replan: !self.plan_once, distinct: self.distinct, horizon, ..search }
    }

    fn source(&self) -> impl FnMut() -> u64 {
        let mut random = MersenneTwister::new(self.random_seed);
        move || u64::from(random.next_u32()) << 32 | u64::from(random.next_u32())
    }
}
