//! Players by the names that a tournament gives them: looked up once, before the first game. What a run of the store
//! holds is made by the same jobs as in a cluster; only files and folders of this machine are read here.

use crate::checkers::species::Population;
use crate::contender;
use crate::failure::Failure;
use crate::run::How;
use crate::run_name;
use archipelago::job::{self, JobResult, LookUp};
use bytes::Bytes;
use checkers::PlayerFile;
use evolution::digest::Digest;
use experiment::Tournament;
use run::players::{LookUpError, PlayerFiles};
use std::collections::BTreeMap;
use std::path::Path;

/// A tournament for which these players were looked up, and their files.
pub(crate) async fn look_up(
    tournament: &Tournament,
    look_ups: Vec<LookUp>,
    how: &How,
) -> Result<(Tournament, PlayerFiles), Failure> {
    let mut found = BTreeMap::new();
    for look_up in look_ups {
        let result = find(tournament, &look_up, how).await?;
        found.insert(look_up, result);
    }
    Ok(job::resolve(tournament, &found).map_err(|report| *report)?)
}

/// What a look-up comes to.
async fn find(tournament: &Tournament, look_up: &LookUp, how: &How) -> Result<JobResult, Failure> {
    let refused = |error: job::JobError| {
        let (reference, reason) = (look_up.reference.clone(), error.to_string());
        Failure::from(LookUpError::Job { reference, reason })
    };
    if look_up.species && Population::is_of_files(&look_up.reference) {
        let networks = Population::of(std::slice::from_ref(&look_up.reference), &how.store).await?.networks;
        let wants_ensemble = job::wants_ensemble(tournament, look_up);
        let species = || job::species(&networks, &tournament.keys().species, wants_ensemble);
        return how.pool()?.install(species).map_err(refused);
    }
    let store = how.store.open().await?;
    let text = &look_up.reference;
    let run = run_name::complete(&store, contender::reference(text)?).await?.run;
    let rest = &text[look_up.run().len()..];
    let (job, inputs) =
        coordinator::read_player_inputs(&store, tournament, look_up, format!("{run}{rest}")).await?;
    how.pool()?.install(|| job.compute(&inputs)).map_err(refused)
}

/// Takes the player files of this machine along: a coordinator elsewhere does not have them.
pub(crate) fn take_files_along(tournament: &Tournament) -> Result<(Tournament, PlayerFiles), Failure> {
    let mut files = PlayerFiles::new();
    let mut players = tournament.players().to_vec();
    for player in players.iter_mut().filter(|player| player.is_looked_up()) {
        let Some(path) = player.player.as_deref().filter(|path| Path::new(path).is_file()) else { continue };
        let bytes = read_file(path)?;
        let digest = Digest::of(&bytes);
        files.insert(digest, bytes);
        player.digest = Some(digest.to_string());
    }
    Ok((tournament.with_players(players)?, files))
}

fn read_file(path: &str) -> Result<Bytes, Failure> {
    let file = PlayerFile::load(Path::new(path));
    Ok(file.map_err(|error| Failure::Config(format!("{path}: {error}")))?.to_bytes().into())
}
