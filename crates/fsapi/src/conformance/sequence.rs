//! Sequences of operations on a subject and on the model.

use senesce_core::{Bytes, Seed};

use super::{
    Difference, Draw, Make, Operation, Player, SequenceOptions, Subject,
    tree::{collect_tree, find_difference},
};
use crate::{Caller, FileSystem, FsResult, Ino, ModelFs, SetAttributes, Timestamp};

/// Applies random operations to a new subject and to the model.
///
/// Errors: a difference, with the shortest sequence found, ready for [`run_operations`]. Cost: a
/// tenth of a second for the default options on the model; a difference costs some hundred times
/// that.
pub fn run_sequence(make: Make<'_>, seed: Seed, options: &SequenceOptions) -> Result<(), Difference> {
    let operations: Vec<Operation> = Draw::new(seed, options).take(options.operations).collect();
    let Err((at, _)) = compare(make, &operations, options.compare_every) else { return Ok(()) };
    let shortest = shorten(make, operations[..at].to_vec(), options.compare_every);
    let Err((_, problem)) = compare(make, &shortest, 1) else {
        return Err(Difference(format!("seed {} differs after {at} operations, but not when it is repeated", seed.0)));
    };
    let told: Vec<String> = shortest.iter().map(|operation| format!("    {operation:?},")).collect();
    Err(Difference(format!("seed {}: {problem}; after\n{}", seed.0, told.join("\n"))))
}

/// Applies these operations to a new subject and to the model, and compares after each.
///
/// Errors: the first difference.
pub fn run_operations(make: Make<'_>, operations: &[Operation]) -> Result<(), Difference> {
    compare(make, operations, 1).map_err(|(_, problem)| Difference(problem))
}

/// Errors: the number of operations before the difference, and the difference.
fn compare(make: Make<'_>, operations: &[Operation], every: usize) -> Result<(), (usize, String)> {
    let mut subject = make();
    let mut model = ModelFs::new(Bytes(Bytes::GIB));
    set_root(subject.file_system()).and_then(|()| set_root(&model)).map_err(|error| (0, error.to_string()))?;
    let (mut player, mut model_player) = (Player::default(), Player::default());
    for (done, operation) in (1..).zip(operations) {
        let got = player.play(subject.as_mut(), operation);
        let want = model_player.play(&mut model, operation);
        if got != want {
            return Err((done, format!("{operation:?} answers {} and not {}", shown(&got), shown(&want))));
        }
        if done.is_multiple_of(every.max(1)) || done == operations.len() {
            same_state(subject.as_mut(), &model).map_err(|problem| (done, problem))?;
        }
    }
    Ok(())
}

/// Sets the root's owner and times to fixed values, because engines may differ there.
///
/// Errors: those of the file system.
pub fn set_root(fs: &dyn FileSystem) -> FsResult<()> {
    let time = Some(Timestamp { seconds: 1000, nanoseconds: 0 });
    let change = SetAttributes {
        permissions: Some(0o755),
        uid: Some(0),
        gid: Some(0),
        size: None,
        accessed: time,
        modified: time,
        changed: time,
    };
    fs.set_attributes(&Caller::default(), Ino::ROOT, &change).map(|_| ())
}

fn shown(answer: &super::Answer) -> String {
    let mut text = format!("{answer:?}");
    if text.len() > 400 {
        text.truncate(400);
        text.push_str("...");
    }
    text
}

fn same_state(subject: &mut dyn Subject, model: &ModelFs) -> Result<(), String> {
    subject.check()?;
    let space = subject.file_system().space().map_err(|error| format!("there is no report of its space: {error}"))?;
    if space.available > space.free || space.free > space.blocks || space.free_inodes > space.inodes {
        return Err(format!("more is free than there is: {space:?}"));
    }
    let got = collect_tree(subject.file_system()).map_err(|error| format!("the tree cannot be read: {error}"))?;
    let want = collect_tree(model).map_err(|error| format!("the model's tree cannot be read: {error}"))?;
    match find_difference(&want, &got) {
        Some(difference) => Err(format!("the trees differ: {difference}")),
        None => Ok(()),
    }
}

/// Removes operations that a difference does not need: halves, quarters, ..., single operations.
fn shorten(make: Make<'_>, mut operations: Vec<Operation>, every: usize) -> Vec<Operation> {
    let mut piece = operations.len().div_ceil(2);
    while piece > 0 {
        let mut at = 0;
        while at < operations.len() {
            let end = (at + piece).min(operations.len());
            let without = [&operations[..at], &operations[end..]].concat();
            // A comparison after each operation is expensive, so only short sequences use it.
            let every = if without.len() < 40 { 1 } else { every };
            match compare(make, &without, every) {
                Err((failed, _)) => operations = without[..failed].to_vec(),
                Ok(()) => at = end,
            }
        }
        piece /= 2;
    }
    operations
}
