//! What was expensive to read, remembered for a while: lists of runs, their curves, the history of a run.

use super::{Exhibit, HttpError};
use axum::http::StatusCode;
use futures::future::{BoxFuture, Shared};
use futures::{FutureExt, StreamExt, stream};
use report::Section;
use report::dashboard::{History, RunRow};
use report::run::Strip;
use run::listing::RunLog;
use run::reader::Reader;
use run::{RunId, history, listing};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use store::Store;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// How old a list of runs may be before it is read again, while the old one is shown.
const LIST_AGE: Duration = Duration::from_secs(2);
/// How long a page waits for the first list of a store. What is read later is there with the next refresh.
const LIST_WAIT: Duration = Duration::from_secs(3);
/// How old the curve of a run that continues may be.
const SPARK_AGE: Duration = Duration::from_secs(20);
/// How long a page waits for curves that are being read. What comes later is there with the next refresh.
const SPARK_WAIT: Duration = Duration::from_millis(300);
/// How old a history may be at least.
const HISTORY_AGE: Duration = Duration::from_secs(2);
/// How old a list or a history may be, as a multiple of what reading it took: one page that is left open costs no more
/// than a thirtieth of a core. All histories that are read again cost no more than that together.
const PATIENCE: u32 = 30;
/// A history that is older and behind its run says so.
const WORTH_A_WORD: Duration = Duration::from_secs(10);
/// How long a program waits for a history that is read again, before it is given an older one.
const REFRESH: Duration = Duration::from_secs(20);
/// The most histories and curves that are remembered.
const MOST_HISTORIES: usize = 16;
const MOST_SPARKS: usize = 10_000;
/// The most runs that are remembered as read, and the most whose events are remembered.
const MOST_READ: usize = 10_000;
const MOST_LOGS: usize = 64;
/// For how long the events of a run are not looked for again, while its state is the same.
const LOG_AGE: Duration = Duration::from_secs(1);
/// How many runs of a list are read at once.
const READ_AHEAD: usize = 32;
/// Points that are remembered of a history: of all islands together, and of each at least and at most. Of all histories
/// together there are about 400 000, or 40 MB.
const ALL_POINTS: usize = 50_000;
const FEWEST_POINTS: usize = 10;
pub(super) const MOST_POINTS: usize = 1000;
const POINTS_OF_ALL: usize = 400_000;
/// Of more islands only the champions of the leading ones are read.
const CHAMPIONS: usize = 256;
/// The largest history of which all generations are read, and the largest of which all commits are, as they are stored. Of
/// one in between the last generation of each epoch is read, and of a larger one that of as many commits as have about this
/// size: reading takes 2 to 3 times as much memory, whatever the length of the run.
const DETAILED: u64 = 8 << 20;
const LARGEST_HISTORY: u64 = 64 << 20;

/// How a run went, as it was read.
pub(super) struct Known {
    pub(super) sections: Arc<Vec<Section>>,
    pub(super) strip: Arc<Strip>,
    pub(super) history: History,
    /// What is wrong with the run, if that was found out.
    damage: Option<String>,
    read: Instant,
    cost: Duration,
    stamp: Stamp,
}

impl Known {
    /// How long ago it was read, if the run has continued since and a reader should know.
    fn behind(&self, row: &RunRow) -> Option<u64> {
        let age = self.read.elapsed();
        (age > WORTH_A_WORD && self.stamp != Stamp::of(row)).then_some(age.as_millis() as u64)
    }
}

/// Something that is being read, or why it cannot be.
type Reading<T> = Shared<BoxFuture<'static, Result<Arc<T>, String>>>;

/// What happened to a run, when that was asked for last, and at which moment of its cluster.
struct ReadLog {
    log: Arc<RunLog>,
    asked: Instant,
    moment: LogMoment,
}

/// The decisions of operators so far, and the state of the run: events are written when one of them changes.
pub(super) type LogMoment = (u64, String);

/// What distinguishes two readings of a run: a run that has ended may be continued, or submitted again under its name.
#[derive(Clone, Debug, PartialEq)]
struct Stamp {
    state: String,
    created: u64,
    done: u64,
    evaluations: u64,
    digest: Option<String>,
}

impl Stamp {
    fn of(row: &RunRow) -> Self {
        let RunRow { state, created, done, evaluations, digest, .. } = row.clone();
        Self { state, created, done, evaluations, digest }
    }
}

/// A run as it is listed, and what its history has shown of it.
struct Damaged {
    row: RunRow,
    reason: String,
}

struct Spark {
    points: Vec<f64>,
    read: Instant,
    cost: Duration,
    stamp: Stamp,
}

/// Runs as they were listed, when, and how long that took.
#[derive(Clone)]
struct Listed {
    rows: Arc<Vec<RunRow>>,
    read: Instant,
    cost: Duration,
}

impl Listed {
    fn is_fresh(&self) -> bool {
        self.read.elapsed() < LIST_AGE.max(PATIENCE * self.cost)
    }
}

/// Runs as far as they are listed, and how many are not read yet.
#[derive(Clone, Default)]
pub(super) struct Rows {
    pub(super) rows: Arc<Vec<RunRow>>,
    pub(super) unread: usize,
}

#[derive(Default)]
struct Kept {
    rows: Option<Listed>,
    /// The first list, while it is read.
    first: Rows,
    first_reading: Option<Shared<BoxFuture<'static, Result<(), HttpError>>>>,
    sparks: BTreeMap<String, Spark>,
    histories: BTreeMap<String, Arc<Known>>,
    readings: BTreeMap<String, Reading<Known>>,
    /// Runs whose history was read, by when they were created: what was forgotten since is no reason to hurry.
    read: BTreeMap<String, u64>,
    /// Runs that lists show as they were when they ended, and whose records have shown since that they are damaged.
    damaged: BTreeMap<String, Damaged>,
    logs: BTreeMap<String, ReadLog>,
    log_readings: BTreeMap<String, Reading<RunLog>>,
}

/// Everything that is remembered. Clones are the same.
#[derive(Clone)]
pub(super) struct HistoryCache {
    kept: Arc<Mutex<Kept>>,
    /// One list, one batch of curves and one history are read at a time: the cluster has other things to do.
    listing: Arc<Semaphore>,
    sparking: Arc<Semaphore>,
    reading: Arc<Semaphore>,
    /// A history that is read again keeps this for a multiple of what that took, so that pages of many runs cost no more
    /// than the page of one.
    refreshing: Arc<Semaphore>,
    exhibit: Option<Exhibit>,
}

impl HistoryCache {
    pub(super) fn new(exhibit: Option<Exhibit>) -> Self {
        let one = || Arc::new(Semaphore::new(1));
        let (listing, sparking, reading, refreshing) = (one(), one(), one(), one());
        Self { kept: Arc::default(), listing, sparking, reading, refreshing, exhibit }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All runs of a store. A list that is old is shown once more, while a new one is read; the first one is shown as far as
    /// it was read within a time.
    pub(super) async fn rows(&self, store: &Store) -> Result<Rows, HttpError> {
        let known = self.lock().rows.clone();
        if let Some(known) = known {
            if !known.is_fresh()
                && let Ok(permit) = self.listing.clone().try_acquire_owned()
            {
                let (cache, store) = (self.clone(), store.clone());
                tokio::spawn(async move {
                    let _permit = permit;
                    // What cannot be listed now may be later.
                    let _ = cache.read_rows(&store, false).await;
                });
            }
            return Ok(Rows { rows: known.rows, unread: 0 });
        }
        if let Ok(read) = tokio::time::timeout(LIST_WAIT, self.first_reading(store)).await {
            read?;
        }
        let kept = self.lock();
        let known = kept.rows.as_ref().map(|known| Rows { rows: known.rows.clone(), unread: 0 });
        Ok(known.unwrap_or_else(|| kept.first.clone()))
    }

    fn first_reading(&self, store: &Store) -> Shared<BoxFuture<'static, Result<(), HttpError>>> {
        let mut kept = self.lock();
        if let Some(reading) = &kept.first_reading {
            return reading.clone();
        }
        let (cache, store) = (self.clone(), store.clone());
        // The task outlives its callers, as that of a history.
        let task = tokio::spawn(async move {
            let read = cache.read_rows(&store, true).await;
            let mut kept = cache.lock();
            kept.first = Rows::default();
            kept.first_reading = None;
            read
        });
        let failed = |error: tokio::task::JoinError| {
            Err(HttpError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
        };
        let reading = async move { task.await.unwrap_or_else(failed) }.boxed().shared();
        kept.first_reading = Some(reading.clone());
        reading
    }

    async fn read_rows(&self, store: &Store, is_first: bool) -> Result<(), HttpError> {
        let start = Instant::now();
        let names = listing::names(store).await;
        let names =
            names.map_err(|error| HttpError::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()))?;
        let mut unread = names.len();
        let read = |run: RunId| async move { listing::row(store, &run).await };
        let mut read = stream::iter(names).map(read).buffered(READ_AHEAD);
        let mut rows = vec![];
        while let Some(row) = read.next().await {
            unread -= 1;
            rows.extend(row.clone());
            if is_first {
                let mut kept = self.lock();
                Arc::make_mut(&mut kept.first.rows).extend(row);
                kept.first.unread = unread;
            }
        }
        let rows = Arc::new(rows);
        self.lock().rows = Some(Listed { rows, read: Instant::now(), cost: start.elapsed() });
        Ok(())
    }

    /// Adds the curves of runs, as far as they are known or can be read quickly.
    pub(super) async fn add_sparks(&self, store: &Store, rows: &mut [RunRow]) {
        let wanted: Vec<(String, Stamp)> = {
            let kept = self.lock();
            let is_fresh = |row: &RunRow| {
                let known = kept.sparks.get(&row.run);
                let is_fresh = |known: &Spark| known.read.elapsed() < SPARK_AGE.max(PATIENCE * known.cost);
                known.is_some_and(|known| {
                    if row.has_ended() { known.stamp == Stamp::of(row) } else { is_fresh(known) }
                })
            };
            let evolves = |row: &RunRow| row.kind == "evolution" && row.done > 0;
            let wanted = rows.iter().filter(|row| evolves(row) && !is_fresh(row));
            wanted.map(|row| (row.run.clone(), Stamp::of(row))).collect()
        };
        if !wanted.is_empty()
            && let Ok(permit) = self.sparking.clone().try_acquire_owned()
        {
            let (cache, store) = (self.clone(), store.clone());
            let reading = tokio::spawn(async move {
                let _permit = permit;
                for (run, stamp) in wanted {
                    cache.read_spark(&store, run, stamp).await;
                }
            });
            let _ = tokio::time::timeout(SPARK_WAIT, reading).await;
        }
        let kept = self.lock();
        for row in rows {
            row.spark = kept.sparks.get(&row.run).map(|known| known.points.clone()).unwrap_or_default();
        }
    }

    async fn read_spark(&self, store: &Store, run: String, stamp: Stamp) {
        let Ok(id) = RunId::new(&run) else { return };
        let start = Instant::now();
        let points =
            apart(store.clone(), move |store| async move { listing::spark(&store, &id).await }).await;
        let mut kept = self.lock();
        if kept.sparks.len() >= MOST_SPARKS {
            kept.sparks.clear();
        }
        let points = points.unwrap_or_default();
        kept.sparks.insert(run, Spark { points, read: Instant::now(), cost: start.elapsed(), stamp });
    }

    /// How a run went. A history that was never read is waited for as long as that takes; one that is read again only for a
    /// while.
    pub(super) async fn history(&self, store: &Store, row: &RunRow) -> Result<Arc<Known>, String> {
        let row = &self.as_listed(row);
        if !self.was_read(row) {
            return self.newest(store, row).await;
        }
        let known = self.history_within(store, row, REFRESH).await?;
        known
            .ok_or_else(|| "its history is being read again, after those of other runs: ask later".to_owned())
    }

    /// The history, once it is read. One is read at a time, apart from all calls, whether the caller waits for it or not.
    async fn newest(&self, store: &Store, row: &RunRow) -> Result<Arc<Known>, String> {
        let known = match self.fresh(row) {
            Some(known) => known,
            None => self.reading(store, row)?.await?,
        };
        self.note_damage(row, &known);
        Ok(known)
    }

    fn was_read(&self, row: &RunRow) -> bool {
        self.lock().read.get(&row.run) == Some(&row.created)
    }

    /// The same for a page, which does not wait at all where an older history is known that is not read again in this time.
    pub(super) async fn history_at_once(
        &self,
        store: &Store,
        row: &RunRow,
        patience: Duration,
    ) -> Result<Option<Arc<Known>>, String> {
        let row = &self.as_listed(row);
        let takes_longer =
            |known: Arc<Known>| known.cost > patience || self.refreshing.available_permits() == 0;
        let is_hopeless = !row.has_ended() && self.older(row).is_some_and(takes_longer);
        self.history_within(store, row, if is_hopeless { Duration::ZERO } else { patience }).await
    }

    /// How a run went, as far as that is known or read within a time; nothing if it takes longer.
    pub(super) async fn history_within(
        &self,
        store: &Store,
        row: &RunRow,
        patience: Duration,
    ) -> Result<Option<Arc<Known>>, String> {
        if let Ok(read) = tokio::time::timeout(patience, self.newest(store, row)).await {
            return read.map(Some);
        }
        // An older history of the same run is better than none.
        Ok(self.older(row))
    }

    fn older(&self, row: &RunRow) -> Option<Arc<Known>> {
        let kept = self.lock();
        kept.histories.get(&row.run).filter(|known| known.stamp.created == row.created).cloned()
    }

    fn fresh(&self, row: &RunRow) -> Option<Arc<Known>> {
        let known = self.lock().histories.get(&row.run).cloned()?;
        let is_fresh = if row.has_ended() {
            known.stamp == Stamp::of(row)
        } else {
            known.stamp.created == row.created
                && known.read.elapsed() < HISTORY_AGE.max(PATIENCE * known.cost)
        };
        is_fresh.then_some(known)
    }

    /// The reading of a history that is under way, or a new one.
    fn reading(&self, store: &Store, row: &RunRow) -> Result<Reading<Known>, String> {
        let is_first = !self.was_read(row);
        let mut kept = self.lock();
        if let Some(reading) = kept.readings.get(&row.run) {
            return Ok(reading.clone());
        }
        let id = RunId::new(&row.run).map_err(|error| error.to_string())?;
        let (cache, store, stamp, kind) = (self.clone(), store.clone(), Stamp::of(row), row.kind.clone());
        // The task outlives its callers: a page that is closed or loaded again starts no second one.
        let task = tokio::spawn(async move {
            let permits = if is_first { &cache.reading } else { &cache.refreshing };
            let permit = permits.clone().acquire_owned().await;
            let start = Instant::now();
            let read = cache.read_history(store, (id.clone(), kind), stamp).await;
            cache.lock().readings.remove(id.as_str());
            if !is_first {
                let cost = start.elapsed();
                tokio::spawn(async move {
                    tokio::time::sleep(PATIENCE * cost).await;
                    drop(permit);
                });
            }
            read
        });
        let reading = async move { task.await.unwrap_or_else(|error| Err(error.to_string())) };
        let reading = reading.boxed().shared();
        kept.readings.insert(row.run.clone(), reading.clone());
        Ok(reading)
    }

    async fn read_history(
        &self,
        store: Store,
        (run, kind): (RunId, String),
        stamp: Stamp,
    ) -> Result<Arc<Known>, String> {
        let start = Instant::now();
        let bytes = store.size_below(&run.commits()).await.map_err(|error| error.to_string())?;
        let (id, exhibit) = (run.clone(), self.exhibit.clone());
        let read = apart(store, move |store| async move {
            match (kind.as_str(), exhibit) {
                ("sweep" | "tournament", Some(exhibit)) => {
                    let sections = exhibit(store, id).await;
                    Ok(Read { sections, ..Read::default() })
                }
                ("sweep" | "tournament" | "study", _) => Ok(Read::default()),
                (_, exhibit) => read((&store, &id), exhibit, bytes).await,
            }
        })
        .await;
        let Read { sections, strip, history, damage } = read.ok_or("its history could not be read")??;
        let (read, cost) = (Instant::now(), start.elapsed());
        let (sections, strip) = (Arc::new(sections), Arc::new(strip));
        let known = Arc::new(Known { sections, strip, history, damage, read, cost, stamp });
        let mut kept = self.lock();
        if kept.read.len() >= MOST_READ {
            kept.read.clear();
        }
        kept.read.insert(run.to_string(), known.stamp.created);
        kept.histories.insert(run.to_string(), known.clone());
        let points = |known: &Arc<Known>| known.history.epochs.len() + known.history.statistics.len();
        while kept.histories.len() > MOST_HISTORIES
            || kept.histories.len() > 1 && kept.histories.values().map(points).sum::<usize>() > POINTS_OF_ALL
        {
            let oldest =
                kept.histories.iter().min_by_key(|(_, known)| known.read).map(|(run, _)| run.clone());
            oldest.map(|oldest| kept.histories.remove(&oldest));
        }
        Ok(known)
    }

    /// A run as its history has shown it, if that was read: the records of a run that has ended may be damaged, which takes
    /// longer to find out than a list may take.
    pub(super) fn as_found(&self, row: RunRow) -> RunRow {
        let kept = self.lock();
        let found = kept.damaged.get(&row.run).filter(|found| Stamp::of(&found.row) == Stamp::of(&row));
        let Some(found) = found else { return row };
        let RunRow { run, kind, unit, created, priority, labels, .. } = row;
        let (state, reason) = ("damaged".to_owned(), found.reason.clone());
        RunRow { run, kind, unit, created, priority, labels, state, reason, ..RunRow::default() }
    }

    /// The same for many runs, of which few are damaged.
    pub(super) fn all_as_found(&self, rows: Arc<Vec<RunRow>>) -> Arc<Vec<RunRow>> {
        if self.lock().damaged.is_empty() {
            return rows;
        }
        Arc::new(rows.iter().map(|row| self.as_found(row.clone())).collect())
    }

    /// The row in whose place [`as_found`](Self::as_found) shows one: histories are remembered by it.
    fn as_listed(&self, row: &RunRow) -> RunRow {
        let kept = self.lock();
        let known = kept.damaged.get(&row.run).filter(|known| known.row.created == row.created);
        let known = known.filter(|_| row.state == "damaged");
        known.map_or_else(|| row.clone(), |known| known.row.clone())
    }

    /// How long ago a history was read, if the run has continued since and a reader should know.
    pub(super) fn age(&self, known: &Known, row: &RunRow) -> Option<u64> {
        known.behind(&self.as_listed(row))
    }

    fn note_damage(&self, row: &RunRow, known: &Known) {
        let mut kept = self.lock();
        match &known.damage {
            Some(reason) if row.has_ended() => {
                if kept.damaged.len() >= MOST_READ {
                    kept.damaged.clear();
                }
                let damaged = Damaged { row: row.clone(), reason: reason.clone() };
                kept.damaged.insert(row.run.clone(), damaged);
            }
            _ => drop(kept.damaged.remove(&row.run)),
        }
    }

    /// What happened to a run. Events that are known are not read again.
    pub(super) async fn log(
        &self,
        store: &Store,
        run: RunId,
        moment: LogMoment,
    ) -> Result<Arc<RunLog>, String> {
        self.log_reading(store, run, moment).await
    }

    /// The same as it was looked for a moment ago.
    pub(super) fn recent_log(&self, run: &RunId, moment: &LogMoment) -> Option<Arc<RunLog>> {
        let kept = self.lock();
        let known = kept.logs.get(run.as_str())?;
        (known.asked.elapsed() < LOG_AGE && known.moment == *moment).then(|| known.log.clone())
    }

    fn log_reading(&self, store: &Store, run: RunId, moment: LogMoment) -> Reading<RunLog> {
        let name = run.to_string();
        let mut kept = self.lock();
        if let Some(reading) = kept.log_readings.get(&name) {
            return reading.clone();
        }
        let known = kept.logs.get(&name).map(|known| known.log.clone());
        let (cache, store) = (self.clone(), store.clone());
        // The task outlives its callers, as that of a history.
        let task = tokio::spawn(async move {
            let known = known.unwrap_or_else(|| Arc::new(RunLog::empty(&run)));
            let read = known.read_on(&store, &run).await.map(Arc::new);
            let mut kept = cache.lock();
            kept.log_readings.remove(run.as_str());
            if let Ok(log) = &read {
                let log = ReadLog { log: log.clone(), asked: Instant::now(), moment };
                kept.logs.insert(run.to_string(), log);
            }
            while kept.logs.len() > MOST_LOGS {
                let oldest = kept.logs.iter().min_by_key(|(_, log)| log.asked).map(|(run, _)| run.clone());
                oldest.map(|oldest| kept.logs.remove(&oldest));
            }
            read
        });
        let reading = async move { task.await.unwrap_or_else(|error| Err(error.to_string())) };
        let reading = reading.boxed().shared();
        kept.log_readings.insert(name, reading.clone());
        reading
    }
}

/// Reads something where it keeps no call from being served: decoding takes seconds where runs are long.
async fn apart<T, F>(store: Store, read: impl FnOnce(Store) -> F + Send + 'static) -> Option<T>
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || runtime.block_on(read(store))).await.ok()
}

/// What was read of a run.
#[derive(Default)]
struct Read {
    sections: Vec<Section>,
    strip: Strip,
    history: History,
    damage: Option<String>,
}

async fn read((store, run): (&Store, &RunId), exhibit: Option<Exhibit>, bytes: u64) -> Result<Read, String> {
    let reader = match bytes {
        all if all > LARGEST_HISTORY => Reader::read_part(store, run, LARGEST_HISTORY).await,
        all if all > DETAILED => Reader::read_outline(store, run).await,
        _ => Reader::read(store, run).await,
    };
    let mut reader = reader.map_err(|error| error.to_string())?;
    let champions = reader.leading_champions(CHAMPIONS).await;
    let damage = reader.damage.first().map(ToString::to_string);
    let read = history::of(run, reader, champions);
    let points = (ALL_POINTS / read.islands.len().max(1)).clamp(FEWEST_POINTS, MOST_POINTS);
    let shown = match exhibit {
        Some(exhibit) if read.generations() > 0 => exhibit(store.clone(), run.clone()).await,
        _ => vec![],
    };
    let (strip, history) = (Strip::of(&read), History::of(&read, points));
    Ok(Read { sections: report::run::history(&read, shown), strip, history, damage })
}

#[cfg(test)]
mod tests {
    use super::*;
    use run::Place;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// What reading a history takes at least here.
    const COST: Duration = Duration::from_millis(5);

    fn counting() -> (HistoryCache, Arc<AtomicU32>) {
        let calls: Arc<AtomicU32> = Arc::default();
        let counted = calls.clone();
        let exhibit: Exhibit = Arc::new(move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            async {
                tokio::time::sleep(COST).await;
                vec![]
            }
            .boxed()
        });
        (HistoryCache::new(Some(exhibit)), calls)
    }

    fn row(number: u32, state: &str, done: u64) -> RunRow {
        let (run, kind) = (format!("run-{number}"), "tournament".to_owned());
        RunRow { run, kind, state: state.to_owned(), done, ..RunRow::default() }
    }

    /// Pages of more runs than are remembered, ended ones or running ones, that are read again all the time.
    #[tokio::test]
    async fn pages_of_many_runs_cost_no_more_than_the_page_of_one() {
        const RUNS: u32 = 40;
        for state in ["finished", "running"] {
            let ((cache, calls), store) = (counting(), Store::memory());
            for number in 0..RUNS {
                cache.history(&store, &row(number, state, 0)).await.unwrap();
            }
            assert_eq!(calls.load(Ordering::SeqCst), RUNS, "the first time nothing is held back");
            let start = Instant::now();
            while start.elapsed() < 100 * COST {
                for number in 0..RUNS {
                    let row = row(number, state, start.elapsed().as_millis() as u64);
                    let read = cache.history_within(&store, &row, Duration::from_micros(100)).await;
                    assert!(read.is_ok());
                }
            }
            let again = calls.load(Ordering::SeqCst) - RUNS;
            let most = start.elapsed().as_millis() as u32 / (PATIENCE * COST.as_millis() as u32) + 1;
            assert!(again <= most, "{state}: {again} read again in {:?}", start.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_list_of_a_slow_store_is_shown_as_far_as_it_was_read() {
        const RUNS: usize = 200;
        let (cache, store) = (HistoryCache::new(None), Store::memory());
        for number in 0..RUNS {
            let run = RunId::new(format!("run-{number:08x}")).unwrap();
            store.create_text(&Place::Experiment.in_run(&run), "nonsense").await.unwrap();
        }
        let slow = store.delayed(Duration::from_millis(500));
        let start = Instant::now();
        let first = cache.rows(&slow).await.unwrap();
        assert!(start.elapsed() <= LIST_WAIT + Duration::from_millis(100), "{:?}", start.elapsed());
        assert!(!first.rows.is_empty() && first.rows.len() + first.unread == RUNS, "{} unread", first.unread);
        tokio::time::sleep(Duration::from_secs(60)).await;
        let all = cache.rows(&slow).await.unwrap();
        assert_eq!((all.rows.len(), all.unread), (RUNS, 0));
    }

    #[tokio::test]
    async fn a_run_that_is_created_again_is_read_at_once() {
        let ((cache, calls), store) = (counting(), Store::memory());
        for created in 0..3 {
            let row = RunRow { created, ..row(0, "finished", 1) };
            cache.history(&store, &row).await.unwrap();
            cache.history(&store, &row).await.unwrap();
        }
        assert_eq!(calls.load(Ordering::SeqCst), 3);
    }
}
