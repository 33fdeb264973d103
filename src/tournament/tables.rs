//! A tournament as tables: the same for the screen, for pages and for programs.

use super::outcome::{Meeting, Outcome, PlayerStanding};
use experiment::tournament::PublishedKeys;
use report::{Table, csv, markdown};
use tournament::{Interval, Race, Rating, SprtVerdict, Tally};

/// The most players of whom a cross table is printed on a screen.
const WIDEST: usize = 24;

impl Outcome<'_> {
    /// The tables that people read, as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let cross_table = (self.plan.players().len() <= WIDEST).then(|| self.cross_table());
        let tables = [Some(self.standings_table()), self.teams(), cross_table, self.verdicts()];
        let tables: Vec<String> = tables.iter().flatten().map(markdown::table).collect();
        let endings = self.endings.iter().filter(|(_, count)| *count > 0);
        let endings: Vec<String> =
            endings.map(|(ending, count)| format!("{} {count}", ending.word())).collect();
        format!("{}\ngames ended by: {}\n", tables.join("\n"), endings.join(", "))
    }

    /// The estimated strength of each player.
    pub(super) fn standings_table(&self) -> Table {
        let columns = ["place", "player", "Elo", "95 %", "score", "games", "won", "drawn", "lost"];
        let caption = "Ratings in Elo above the mean of all players, where these lie with 95 % confidence";
        let mut table = Table::new(caption, &columns);
        for (place, PlayerStanding { name, rating, tally, .. }) in self.standings().iter().enumerate() {
            let [elo, low, high] = [rating.elo, rating.low, rating.high].map(whole);
            let games = [tally.games(), tally.wins, tally.draws, tally.losses].map(|count| count.to_string());
            let player = [(place + 1).to_string(), (*name).to_owned(), elo.to_string()];
            let more = [format!("{low} to {high}"), played(tally, score(tally.score()))];
            table.push(player.into_iter().chain(more).chain(games).collect());
        }
        table
    }

    /// What came out between teams, if there are any.
    pub(super) fn teams(&self) -> Option<Table> {
        let columns = [
            "team",
            "against",
            "won",
            "lost",
            "drawn",
            "score",
            "95 %",
            "judged by",
            "likely stronger",
            "published",
        ];
        let caption = "Teams: scores of the first, and where they lie with 95 % confidence, judged by where players come \
                       from, if that is from several runs";
        let mut table = Table::new(caption, &columns);
        for meeting in self.meetings() {
            let Meeting { teams: [one, other], encounter, published } = &meeting;
            let tally = encounter.tally();
            let counts = [tally.wins, tally.losses, tally.draws].map(|count| count.to_string());
            let judged = [score(tally.score()), range(encounter.interval()), meeting.judged_by()];
            let likely = [score(encounter.superiority()), published.map_or(String::new(), figures)];
            let teams = [(*one).to_owned(), (*other).to_owned()];
            table.push(teams.into_iter().chain(counts).chain(judged).chain(likely).collect());
        }
        (!table.rows.is_empty()).then_some(table)
    }

    /// The score of each against each, in the order of the standings.
    pub(super) fn cross_table(&self) -> Table {
        let standings = self.standings();
        let places = (1..=standings.len()).map(|place| place.to_string());
        let row = |(place, one): (usize, &PlayerStanding<'_>)| {
            let cell = |other: &PlayerStanding<'_>| {
                let tally = self.table.between(one.player, other.player);
                if tally.games() == 0 { "–".to_owned() } else { score(tally.score()) }
            };
            let player = [(place + 1).to_string(), one.name.to_owned()];
            player.into_iter().chain(standings.iter().map(cell)).collect()
        };
        Table {
            caption: "Scores against each other, by places".to_owned(),
            columns: ["place", "player"].map(str::to_owned).into_iter().chain(places).collect(),
            rows: standings.iter().enumerate().map(row).collect(),
        }
    }

    /// What sequential tests have decided, if there are any.
    pub(super) fn verdicts(&self) -> Option<Table> {
        let sprt = self.plan.sprt()?;
        let caption = format!(
            "Sequential tests: is the first player stronger by {} or by {} Elo?",
            sprt.elo0, sprt.elo1
        );
        let mut table = Table::new(caption, &["player", "against", "accepted", "pairs"]);
        for ([first, second], race) in self.races() {
            let players = [first, second].map(|player| self.name(player).to_owned());
            let decided = [self.verdict(race), race.tally.pair_count().to_string()];
            table.push(players.into_iter().chain(decided).collect());
        }
        Some(table)
    }

    fn verdict(&self, race: &Race) -> String {
        match (self.plan.sprt(), race.verdict) {
            (Some(sprt), Some(SprtVerdict::Greater)) => format!("{} Elo", sprt.elo1),
            (Some(sprt), Some(SprtVerdict::Lesser)) => format!("{} Elo", sprt.elo0),
            _ => "undecided".to_owned(),
        }
    }

    /// The results of each pairing, with the counts of pairs of games.
    pub(super) fn pairings(&self) -> Table {
        let columns = [
            "player",
            "against",
            "won",
            "drawn",
            "lost",
            "score",
            "95 %",
            "likely stronger",
            "0",
            "½",
            "1",
            "1½",
            "2",
        ];
        let caption = "Each two players: scores of the first, how likely it is the stronger one, and in how many pairs of \
                       games it scored 0 to 2 points";
        let mut table = Table::new(caption, &columns);
        for ([first, second], tally) in self.table.pairings() {
            let players = [first, second].map(|player| self.name(player).to_owned());
            let counts = [tally.wins, tally.draws, tally.losses].map(|count| count.to_string());
            let judged = [score(tally.score()), range(tally.interval()), score(tally.superiority())];
            let judged = judged.map(|figure| played(tally, figure));
            let pairs = tally.pairs.map(|count| count.to_string());
            table.push(players.into_iter().chain(counts).chain(judged).chain(pairs).collect());
        }
        table
    }

    /// A row for each player, for programs.
    pub(crate) fn players_csv(&self) -> String {
        let columns = ["player", "team", "elo", "elo_low", "elo_high", "wins", "draws", "losses", "score"];
        let mut table = Table::new("", &columns);
        for PlayerStanding { player, name, rating: Rating { elo, low, high }, tally } in self.standings() {
            let team = self.plan.players()[player].team();
            let numbers = [elo, low, high].map(|number| number.to_string());
            let names = [name, team].map(str::to_owned);
            table.push(names.into_iter().chain(numbers).chain(results(&tally)).collect());
        }
        csv::table(&table)
    }

    /// A row for each two teams that have met, for programs.
    pub(crate) fn teams_csv(&self) -> String {
        let columns = [
            "team",
            "against",
            "wins",
            "draws",
            "losses",
            "score",
            "low",
            "high",
            "superiority",
            "origins",
            "origins_against",
        ];
        let mut table = Table::new("", &columns);
        for Meeting { teams, encounter, .. } in self.meetings() {
            let Interval { low, high } = encounter.interval();
            let judged = [low, high, encounter.superiority()].map(|number| number.to_string());
            let origins = encounter.origins().map(|count| count.to_string());
            let names = teams.map(str::to_owned).into_iter();
            table.push(names.chain(results(&encounter.tally())).chain(judged).chain(origins).collect());
        }
        csv::table(&table)
    }

    /// A row for each two who have met, for programs.
    pub(crate) fn pairings_csv(&self) -> String {
        let columns = [
            "player",
            "opponent",
            "wins",
            "draws",
            "losses",
            "score",
            "low",
            "high",
            "superiority",
            "pairs_0",
            "pairs_1",
            "pairs_2",
            "pairs_3",
            "pairs_4",
        ];
        let mut table = Table::new("", &columns);
        for ([first, second], tally) in self.table.pairings() {
            let Interval { low, high } = tally.interval();
            let players = [first, second].map(|player| self.name(player).to_owned());
            let judged = [low, high, tally.superiority()].map(|number| number.to_string());
            let pairs = tally.pairs.map(|count| count.to_string());
            table.push(players.into_iter().chain(results(tally)).chain(judged).chain(pairs).collect());
        }
        csv::table(&table)
    }
}

fn results(tally: &Tally) -> [String; 4] {
    let counts = [tally.wins, tally.draws, tally.losses].map(|count| count.to_string());
    let [wins, draws, losses] = counts;
    [wins, draws, losses, tally.score().to_string()]
}

fn figures(published: &PublishedKeys) -> String {
    let PublishedKeys { wins, draws, losses, source, .. } = published;
    let games = (f64::from(*wins) + f64::from(*draws) + f64::from(*losses)).max(1.0);
    let share = (f64::from(*wins) + f64::from(*draws) / 2.0) / games;
    format!("{wins} won, {losses} lost, {draws} drawn: {share:.3} ({source})")
}

fn score(score: f64) -> String {
    format!("{score:.3}")
}

/// A figure of games, if there are any.
fn played(tally: &Tally, figure: String) -> String {
    if tally.games() == 0 { "–".to_owned() } else { figure }
}

fn range(Interval { low, high }: Interval) -> String {
    format!("{low:.3} to {high:.3}")
}

/// A number of Elo; what rounds to nothing has no sign.
fn whole(elo: f64) -> i64 {
    elo.round() as i64
}
