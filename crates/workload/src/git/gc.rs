//! `git gc --auto`: its thresholds, and its changes to the files of `.git`.

use senesce_oplog::Op;

use super::{
    Oid, PackKey, PackNames,
    dotgit::{BRANCH, create, rename, replace, unlink},
    objects::Store,
};
use crate::WorkloadError;

/// Thresholds, and the last commit that the packs cover.
pub(super) struct Gc {
    auto: u32,
    auto_pack_limit: u32,
    covered: usize,
}

impl Gc {
    /// The state after the initial clone of commit number `start`.
    pub fn new(auto: u32, auto_pack_limit: u32, start: usize) -> Self {
        Self { auto, auto_pack_limit, covered: start }
    }

    /// Plans `git gc --auto` after pull `index`. Below the thresholds it does nothing. Too many
    /// loose objects become one pack. Too many packs become one pack of everything.
    pub fn plan_auto(
        &mut self,
        index: usize,
        head: Oid,
        store: &mut Store,
        names: &dyn PackNames,
        ops: &mut Vec<Op>,
    ) -> Result<(), WorkloadError> {
        // Git extrapolates from one directory: the threshold is ceil(auto / 256) loose objects
        // there.
        let too_many_loose = store.loose_in_17 > self.auto.div_ceil(256);
        let too_many_packs = store.packs.len() > self.auto_pack_limit as usize;
        if !too_many_loose && !too_many_packs {
            return Ok(());
        }
        replace(".git/gc.pid", "1 localhost", ops);
        plan_pack_refs(head, ops);
        let key =
            if too_many_packs { PackKey::All(index) } else { PackKey::Since { after: self.covered, until: index } };
        store.plan_pack(key, false, names, ops)?;
        if too_many_packs {
            store.plan_drop_old_packs(ops);
        }
        store.plan_drop_loose(ops);
        self.covered = index;
        plan_server_info(head, store, ops);
        ops.push(unlink(".git/gc.pid"));
        Ok(())
    }
}

/// `git pack-refs --all --prune`.
fn plan_pack_refs(head: Oid, ops: &mut Vec<Op>) {
    let branch = format!(".git/refs/heads/{BRANCH}");
    let packed = format!("# pack-refs with: peeled fully-peeled sorted \n{head} refs/heads/{BRANCH}\n");
    ops.push(create(".git/packed-refs.lock", ""));
    ops.push(create(".git/packed-refs.new", packed));
    ops.push(rename(".git/packed-refs.new", ".git/packed-refs"));
    ops.push(unlink(".git/packed-refs.lock"));
    ops.push(create(&format!("{branch}.lock"), ""));
    ops.push(unlink(&branch));
    ops.push(unlink(&format!("{branch}.lock")));
}

/// `git update-server-info`.
fn plan_server_info(head: Oid, store: &Store, ops: &mut Vec<Op>) {
    let mut packs = String::new();
    for name in store.packs.iter().rev() {
        packs.push_str(&format!("P pack-{name}.pack\n"));
    }
    packs.push('\n');
    ops.push(create(".git/info/refs_tmp", format!("{head}\trefs/heads/{BRANCH}\n")));
    ops.push(rename(".git/info/refs_tmp", ".git/info/refs"));
    ops.push(create(".git/objects/info/packs_tmp", packs));
    ops.push(rename(".git/objects/info/packs_tmp", ".git/objects/info/packs"));
}
