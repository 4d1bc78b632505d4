//! Several threads on one subject.

use std::thread;

use senesce_core::{Bytes, Seed};

use super::{
    Difference, Draw, Make, Operation, Player, SequenceOptions, Subject, collect_tree, find_difference,
    sequence::set_root,
};
use crate::{FileKind, FileSystem, ModelFs};

/// A subject that one of several threads borrows.
struct Borrowed<'a>(&'a dyn FileSystem);

impl Subject for Borrowed<'_> {
    fn file_system(&self) -> &dyn FileSystem {
        self.0
    }

    fn reopen(&mut self) -> crate::FsResult<()> {
        Ok(())
    }
}

/// Runs several threads, each below its own directory. The result must be that of a sequential run
/// on the model.
///
/// Errors: a difference between answers or between trees.
pub fn run_threads(make: Make<'_>, seed: Seed, threads: u64, operations: usize) -> Result<(), Difference> {
    let mut subject = make();
    let mut model = ModelFs::new(Bytes(Bytes::GIB));
    let failed = |error: crate::FsError| Difference(error.to_string());
    set_root(subject.file_system()).and_then(|()| set_root(&model)).map_err(failed)?;
    let root = |thread: u64| format!("thread-{thread}");
    for thread in 0..threads {
        let made = Operation::MakeNode { path: root(thread), kind: FileKind::Directory, permissions: 0o755 };
        Player::default().play(subject.as_mut(), &made);
        Player::default().play(&mut model, &made);
    }
    let draw = |thread: u64| {
        let options = SequenceOptions { reopen: false, below: root(thread), ..SequenceOptions::default() };
        Draw::new(Seed(seed.0.wrapping_add(thread)), &options).take(operations).collect::<Vec<_>>()
    };
    let play = |fs: &dyn FileSystem, thread: u64| {
        let mut player = Player::default();
        let mut answers: Vec<_> =
            draw(thread).iter().map(|operation| player.play(&mut Borrowed(fs), operation)).collect();
        answers.extend((0..Player::SLOTS).map(|slot| player.play(&mut Borrowed(fs), &Operation::Release { slot })));
        answers
    };
    let fs = subject.file_system();
    let got: Vec<_> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || play(fs, thread))).collect();
        running.into_iter().map(|thread| thread.join()).collect()
    });
    for (thread, got) in (0..threads).zip(got) {
        let got = got.map_err(|_| Difference(format!("seed {}: thread {thread} panicked", seed.0)))?;
        let want = play(&model, thread);
        if let Some(at) = got.iter().zip(&want).position(|(got, want)| got != want) {
            let problem = format!("operation {at} of thread {thread} answers {:?} and not {:?}", got[at], want[at]);
            return Err(Difference(format!("seed {}: {problem}", seed.0)));
        }
    }
    subject.check().map_err(Difference)?;
    let trees = collect_tree(subject.file_system()).and_then(|got| Ok((collect_tree(&model)?, got)));
    let (want, got) = trees.map_err(failed)?;
    match find_difference(&want, &got) {
        Some(problem) => Err(Difference(format!("seed {}: {problem}", seed.0))),
        None => Ok(()),
    }
}
