//! Players by the names that a tournament gives them: looked up once, before the first game.

use crate::checkers::species::Population;
use crate::contender;
use crate::failure::Failure;
use crate::run::How;
use archipelago::job::speciation_settings;
use bytes::Bytes;
use checkers::{Ensemble, Network, PlayerFile};
use ensembles::Speciation;
use evolution::digest::Digest;
use experiment::Tournament;
use experiment::tournament::{PlayerKeys, SpeciesKeys};
use run::players::PlayerFiles;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Looks players up in files and in the store, and finds the species of populations.
pub(crate) struct LookUp<'a> {
    how: &'a How,
    species: SpeciesKeys,
    files: PlayerFiles,
    /// The best of each species of populations that have been looked at.
    representatives: BTreeMap<String, Vec<Arc<Network>>>,
}

/// Looks up everybody who plays in a tournament.
pub(crate) async fn look_up(
    tournament: &Tournament,
    how: &How,
) -> Result<(Tournament, PlayerFiles), Failure> {
    let (species, files) = (tournament.keys().species, PlayerFiles::new());
    let mut look_up = LookUp { how, species, files, representatives: BTreeMap::new() };
    let mut players = vec![];
    for player in tournament.players() {
        players.extend(look_up.player(player).await?);
    }
    Ok((tournament.with_players(players)?, look_up.files))
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

impl LookUp<'_> {
    /// Who a player is, or several.
    async fn player(&mut self, player: &PlayerKeys) -> Result<Vec<PlayerKeys>, Failure> {
        if !player.is_looked_up() || player.digest.is_some() {
            return Ok(vec![player.clone()]);
        }
        let PlayerKeys { representatives, ensemble, player: named, .. } = player;
        if let Some(source) = representatives {
            let networks = self.representatives(source).await?;
            let each = networks.iter().zip(1..).map(|(network, number)| PlayerKeys {
                name: format!("{}.{number}", player.name),
                team: Some(player.team().to_owned()),
                ..self.known(player, network.to_player_file().into())
            });
            return Ok(each.collect());
        }
        let bytes = match (ensemble, named) {
            (Some(source), _) => {
                let ensemble = Ensemble::new(self.representatives(source).await?);
                let refused = |error| Failure::Config(format!("player {}: {error}", player.name));
                ensemble.map_err(refused)?.to_player_file().into()
            }
            (None, Some(path)) if Path::new(path).is_file() => read_file(path)?,
            (None, Some(text)) => {
                let reference = contender::reference(text)?;
                reference.champion(&self.how.store.open().await?).await?
            }
            (None, None) => unreachable!("a player is of some kind"),
        };
        Ok(vec![self.known(player, bytes)])
    }

    /// A player whose file is known from now on.
    fn known(&mut self, player: &PlayerKeys, bytes: Bytes) -> PlayerKeys {
        let digest = Digest::of(&bytes);
        self.files.insert(digest, bytes);
        PlayerKeys { digest: Some(digest.to_string()), ..player.clone() }
    }

    /// The best of each species of a population.
    async fn representatives(&mut self, source: &str) -> Result<Vec<Arc<Network>>, Failure> {
        if let Some(known) = self.representatives.get(source) {
            return Ok(known.clone());
        }
        let networks = Population::of(&[source.to_owned()], &self.how.store).await?.networks;
        let settings = speciation_settings(&self.species);
        let found = self.how.pool()?.install(|| Speciation::of(&networks, &settings));
        let found = found.map_err(|error| Failure::Config(format!("the species of {source}: {error}")))?;
        let best: Vec<_> = found.representatives().into_iter().map(|best| networks[best].clone()).collect();
        eprintln!("{source}: {} players, {} species", networks.len(), best.len());
        self.representatives.insert(source.to_owned(), best.clone());
        Ok(best)
    }
}
