//! Which results are audited, and what is taken back.

use super::*;

#[test]
fn a_share_of_two_percent_is_chosen_and_only_the_secret_tells_which() {
    let terms = |share, secret| AuditTerms { share, secret };
    let chosen = |terms: AuditTerms| -> Vec<u32> {
        let inputs = |number: u32| Digest::of(&number.to_le_bytes());
        (0..50_000).filter(|&number| terms.chooses(&inputs(number))).collect()
    };
    let one = chosen(terms(0.02, 1));
    assert!((900..1100).contains(&one.len()), "{}", one.len());
    assert_ne!(one, chosen(terms(0.02, 2)));
    assert_eq!(chosen(terms(0.0, 1)).len(), 0);
    assert!(!terms(0.0, 1).is_on());
}

#[test]
fn a_liar_takes_back_everything_that_it_computed_and_nobody_has_audited() {
    let (mut authors, nobody) = (Authors::default(), BTreeSet::new());
    authors.begin(&[0, 3, 0]);
    for epoch in 0..10 {
        authors.note((0, epoch), if epoch == 4 || epoch == 7 { "liar" } else { "honest" }, &nobody);
        authors.note((1, epoch + 3), if epoch == 5 { "liar" } else { "honest" }, &nobody);
        authors.note((2, epoch), "honest", &nobody);
    }
    let done = [10, 13, 10];
    assert_eq!(authors.cuts_without("liar", &done), Some(vec![4, 8, 10]));
    assert_eq!(authors.cuts_without("stranger", &done), None);
    authors.note_audited((0, 4));
    assert_eq!(authors.cuts_without("liar", &done), Some(vec![7, 8, 10]));
    authors.begin(&[7, 8, 2]);
    assert_eq!(authors.cuts_without("liar", &[7, 8, 2]), None, "it was taken back");
    assert_eq!(authors.cuts_without("honest", &[7, 8, 2]), Some(vec![0, 3, 0]));
    authors.begin(&[0, 0, 0]);
    authors.note((1, 0), "honest", &nobody);
    authors.note_audited((1, 0));
    authors.attribute((1, 0), "liar");
    assert_eq!(authors.cuts_without("liar", &[0, 1, 0]), Some(vec![0, 0, 0]), "it was the cause");
    authors.attribute((1, 0), "honest");
    assert_eq!(authors.cuts_without("honest", &[0, 1, 0]), Some(vec![0, 0, 0]));
}

#[test]
fn what_others_computed_from_the_checkpoints_of_a_liar_is_taken_back_too() {
    let mut authors = Authors::default();
    authors.begin(&[0, 0]);
    let liar = BTreeSet::from(["liar".to_owned()]);
    for epoch in 0..10 {
        for island in 0..2 {
            let is_poisoned = (island, epoch) == (0, 3) || (island, epoch) == (1, 6);
            let assistants = if is_poisoned { liar.clone() } else { BTreeSet::new() };
            authors.note((island, epoch), "honest", &assistants);
        }
    }
    assert_eq!(authors.cuts_without("liar", &[10, 10]), Some(vec![3, 6]));
    assert_eq!(authors.cuts_without("liar", &[10, 6]), Some(vec![3, 6]), "the other is not done");
    authors.note_audited((0, 3));
    assert_eq!(authors.cuts_without("liar", &[10, 10]), Some(vec![10, 6]));
    authors.begin(&[10, 6]);
    assert_eq!(authors.cuts_without("liar", &[10, 6]), None);
}
