//! What was expensive to read, remembered for a while: lists of runs, their curves, the history of a run.

use super::{Exhibit, Problem};
use axum::http::StatusCode;
use futures::{StreamExt, stream};
use report::Section;
use report::dashboard::{History, RunRow};
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
/// How old the curve of a run that continues may be.
const SPARK_AGE: Duration = Duration::from_secs(20);
/// How long a page waits for curves that are being read. What comes later is there with the next refresh.
const SPARK_WAIT: Duration = Duration::from_millis(300);
/// How old a history may be at least, and as a multiple of what reading it took.
const HISTORY_AGE: Duration = Duration::from_secs(2);
const PATIENCE: u32 = 10;
/// The most histories and curves that are remembered.
const MOST_HISTORIES: usize = 32;
const MOST_SPARKS: usize = 10_000;
/// How many runs of a list are read at once.
const READ_AHEAD: usize = 32;
/// Points that are remembered of a history: of all islands together, and of each at least and at most.
const ALL_POINTS: usize = 200_000;
const FEWEST_POINTS: usize = 10;
const MOST_POINTS: usize = 1000;

/// How a run went, as it was read.
pub(super) struct Known {
    pub(super) sections: Arc<Vec<Section>>,
    pub(super) history: History,
    read: Instant,
    cost: Duration,
    has_ended: bool,
}

struct Spark {
    points: Vec<f64>,
    read: Instant,
    has_ended: bool,
}

#[derive(Default)]
struct Kept {
    rows: Option<(Instant, Vec<RunRow>)>,
    sparks: BTreeMap<String, Spark>,
    histories: BTreeMap<String, Arc<Known>>,
}

/// Everything that is remembered. Clones are the same.
#[derive(Clone)]
pub(super) struct Memory {
    kept: Arc<Mutex<Kept>>,
    /// One list, one batch of curves and one history are read at a time: the cluster has other things to do.
    listing: Arc<Semaphore>,
    sparking: Arc<Semaphore>,
    reading: Arc<Semaphore>,
    exhibit: Option<Exhibit>,
}

impl Memory {
    pub(super) fn new(exhibit: Option<Exhibit>) -> Self {
        let one = || Arc::new(Semaphore::new(1));
        Self { kept: Arc::default(), listing: one(), sparking: one(), reading: one(), exhibit }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All runs of a store. A list that is old is shown once more, while a new one is read.
    pub(super) async fn rows(&self, store: &Store) -> Result<Vec<RunRow>, Problem> {
        let known = self.lock().rows.clone();
        match known {
            Some((read, rows)) if read.elapsed() < LIST_AGE => Ok(rows),
            Some((_, rows)) => {
                if let Ok(permit) = self.listing.clone().try_acquire_owned() {
                    let (memory, store) = (self.clone(), store.clone());
                    tokio::spawn(async move {
                        let _permit = permit;
                        // What cannot be listed now may be later.
                        let _ = memory.read_rows(&store).await;
                    });
                }
                Ok(rows)
            }
            None => {
                let _permit = self.listing.acquire().await;
                let known = self.lock().rows.clone();
                match known {
                    Some((_, rows)) => Ok(rows),
                    None => self.read_rows(store).await,
                }
            }
        }
    }

    async fn read_rows(&self, store: &Store) -> Result<Vec<RunRow>, Problem> {
        let names = listing::names(store).await;
        let names =
            names.map_err(|error| Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()))?;
        let read = |run: RunId| async move { listing::row(store, &run).await };
        let rows: Vec<Option<RunRow>> = stream::iter(names).map(read).buffered(READ_AHEAD).collect().await;
        let rows: Vec<RunRow> = rows.into_iter().flatten().collect();
        self.lock().rows = Some((Instant::now(), rows.clone()));
        Ok(rows)
    }

    /// Adds the curves of runs, as far as they are known or can be read quickly.
    pub(super) async fn add_sparks(&self, store: &Store, rows: &mut [RunRow]) {
        let wanted: Vec<(String, bool)> = {
            let kept = self.lock();
            let is_fresh = |row: &RunRow| {
                let known = kept.sparks.get(&row.run);
                known.is_some_and(|known| {
                    known.has_ended && row.has_ended() || known.read.elapsed() < SPARK_AGE
                })
            };
            let evolves = |row: &RunRow| row.kind == "evolution" && row.done > 0;
            let wanted = rows.iter().filter(|row| evolves(row) && !is_fresh(row));
            wanted.map(|row| (row.run.clone(), row.has_ended())).collect()
        };
        if !wanted.is_empty()
            && let Ok(permit) = self.sparking.clone().try_acquire_owned()
        {
            let (memory, store) = (self.clone(), store.clone());
            let reading = tokio::spawn(async move {
                let _permit = permit;
                for (run, has_ended) in wanted {
                    memory.read_spark(&store, run, has_ended).await;
                }
            });
            let _ = tokio::time::timeout(SPARK_WAIT, reading).await;
        }
        let kept = self.lock();
        for row in rows {
            row.spark = kept.sparks.get(&row.run).map(|known| known.points.clone()).unwrap_or_default();
        }
    }

    async fn read_spark(&self, store: &Store, run: String, has_ended: bool) {
        let Ok(id) = RunId::new(&run) else { return };
        let points =
            apart(store.clone(), move |store| async move { listing::spark(&store, &id).await }).await;
        let mut kept = self.lock();
        if kept.sparks.len() >= MOST_SPARKS {
            kept.sparks.clear();
        }
        let points = points.unwrap_or_default();
        kept.sparks.insert(run, Spark { points, read: Instant::now(), has_ended });
    }

    /// How a run went. One history is read at a time, apart from all calls.
    pub(super) async fn history(
        &self,
        store: &Store,
        run: &RunId,
        has_ended: bool,
    ) -> Result<Arc<Known>, String> {
        let fresh = |memory: &Self| {
            let known = memory.lock().histories.get(run.as_str()).cloned()?;
            let age = known.read.elapsed();
            let is_fresh = has_ended || age < HISTORY_AGE.max(PATIENCE * known.cost);
            (known.has_ended == has_ended && is_fresh).then_some(known)
        };
        if let Some(known) = fresh(self) {
            return Ok(known);
        }
        let _permit = self.reading.acquire().await;
        if let Some(known) = fresh(self) {
            return Ok(known);
        }
        let start = Instant::now();
        let (id, exhibit) = (run.clone(), self.exhibit.clone());
        let read = apart(store.clone(), move |store| async move { read(&store, &id, exhibit).await }).await;
        let (sections, history) = read.ok_or("its history could not be read")??;
        let (read, cost) = (Instant::now(), start.elapsed());
        let known = Arc::new(Known { sections: Arc::new(sections), history, read, cost, has_ended });
        let mut kept = self.lock();
        kept.histories.insert(run.to_string(), known.clone());
        if kept.histories.len() > MOST_HISTORIES {
            let oldest =
                kept.histories.iter().min_by_key(|(_, known)| known.read).map(|(run, _)| run.clone());
            oldest.map(|oldest| kept.histories.remove(&oldest));
        }
        Ok(known)
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

async fn read(
    store: &Store,
    run: &RunId,
    exhibit: Option<Exhibit>,
) -> Result<(Vec<Section>, History), String> {
    let mut reader = Reader::read(store, run).await.map_err(|error| error.to_string())?;
    let mut champions = vec![];
    for island in 0..reader.islands() {
        champions.push(reader.champion(island).await);
    }
    let read = history::of(run, reader, champions);
    let points = (ALL_POINTS / read.islands.len().max(1)).clamp(FEWEST_POINTS, MOST_POINTS);
    let shown = match exhibit {
        Some(exhibit) if read.generations() > 0 => exhibit(store.clone(), run.clone()).await,
        _ => vec![],
    };
    Ok((report::run::history(&read, shown), History::of(&read, points)))
}
