//! Splits and joins of nodes; the root grows and shrinks.

use bytes::Bytes;

use super::{Source, Tree};
use crate::{
    Result,
    node::{Body, Buffer, Child, Inner, Node, NodeId},
};

impl<S: Source> Tree<S> {
    /// Splits a child that is too large, or joins it with a neighbour if both are small. If
    /// `is_appended`, the last messages were after all keys of the child; more of them are likely.
    /// Then the left parts are filled well.
    ///
    /// Errors: those of reading the neighbour.
    pub(super) fn reshape(&mut self, parent: NodeId, index: usize, is_appended: bool) -> Result<()> {
        let child = self.nodes.here(parent).inner().children()[index].id;
        if self.is_too_large(self.nodes.here(child)) {
            self.split(parent, index, is_appended);
            return Ok(());
        }
        for left in [index.checked_sub(1), Some(index)].into_iter().flatten() {
            if self.should_join(parent, left)? {
                return self.join(parent, left);
            }
        }
        Ok(())
    }

    /// Splits a leaf that is too large, and fills the first parts.
    pub(super) fn reshape_as_appended(&mut self, parent: NodeId, index: usize) {
        let child = self.nodes.here(parent).inner().children()[index].id;
        if self.is_too_large(self.nodes.here(child)) {
            self.split(parent, index, true);
        }
    }

    /// Adds a root above a root that is too large. Removes a root whose single child is an inner
    /// node. Returns whether the root changed.
    pub(super) fn fit_root(&mut self) -> Result<bool> {
        let root = self.nodes.here(self.root);
        if self.is_too_large(root) {
            let child = Child::new(Bytes::new(), self.root, Buffer::default());
            let body = Body::Inner(Inner::new(root.height() + 1, vec![child]));
            self.root = self.nodes.create(Node { lower: Bytes::new(), upper: None, body });
            self.split(self.root, 0, false);
            return Ok(true);
        }
        match &root.body {
            Body::Inner(inner) if inner.children().len() == 1 && inner.height() > 1 => {
                let child = inner.children()[0].id;
                self.push_down(self.root, 0)?;
                self.nodes.free(self.root);
                self.root = child;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn is_too_large(&self, node: &Node) -> bool {
        match &node.body {
            Body::Leaf(leaf) => leaf.weight() > self.sizes.node_bytes && leaf.parts().len() > 1,
            Body::Inner(inner) => inner.children().len() > self.sizes.fanout,
        }
    }

    /// Splits a child. Child and parent must be in memory with all parts. It cannot fail.
    fn split(&mut self, parent: NodeId, index: usize, is_appended: bool) {
        let child = self.nodes.here(parent).inner().children()[index].id;
        let pieces = self.pieces((**self.nodes.here(child)).clone(), is_appended);
        let (mut lowers, mut ids) = (Vec::new(), Vec::new());
        for (number, piece) in pieces.into_iter().enumerate() {
            lowers.push(piece.lower.clone());
            if number == 0 {
                self.nodes.edit(child, |node| *node = piece);
                ids.push(child);
            } else {
                ids.push(self.nodes.create(piece));
            }
        }
        self.nodes.edit(parent, |parent| {
            let children = parent.inner_mut().children_mut();
            let waiting = children[index].take();
            let new: Vec<Child> = (0..ids.len())
                .map(|number| {
                    Child::new(
                        lowers[number].clone(),
                        ids[number],
                        waiting.within(&lowers[number], lowers.get(number + 1)),
                    )
                })
                .collect();
            children.splice(index..=index, new);
        });
    }

    fn pieces(&self, node: Node, is_appended: bool) -> Vec<Node> {
        let Node { lower, upper, body } = node;
        let (firsts, bodies): (Vec<Bytes>, Vec<Body>) = match body {
            Body::Leaf(leaf) => leaf
                .split(self.sizes.leaf_target(is_appended), self.sizes.node_bytes, is_appended)
                .into_iter()
                .map(|leaf| (leaf.parts()[0].first.clone(), Body::Leaf(leaf)))
                .unzip(),
            Body::Inner(inner) => inner
                .split(self.sizes.fanout_target(is_appended), is_appended)
                .into_iter()
                .map(|inner| (inner.children()[0].lower.clone(), Body::Inner(inner)))
                .unzip(),
        };
        let mut pieces: Vec<Node> = Vec::with_capacity(bodies.len());
        for (number, body) in bodies.into_iter().enumerate() {
            let lower = if number == 0 { lower.clone() } else { firsts[number].clone() };
            pieces.push(Node { lower, upper: firsts.get(number + 1).or(upper.as_ref()).cloned(), body });
        }
        pieces
    }

    /// Whether a child and the next one are small enough to be joined.
    fn should_join(&mut self, parent: NodeId, left: usize) -> Result<bool> {
        let children = self.nodes.here(parent).inner().children();
        let (Some(a), Some(b)) = (children.get(left), children.get(left + 1)) else { return Ok(false) };
        let (a, b) = (a.id, b.id);
        if self.nodes.here(parent).height() == 1 {
            return Ok(self.nodes.bytes(a) + self.nodes.bytes(b) <= self.sizes.node_bytes / 2);
        }
        let (mut children, mut weight) = (0, 0);
        for id in [a, b] {
            let inner = self.nodes.peek(id)?.inner();
            children += inner.children().len();
            weight += inner.weight();
        }
        Ok(children <= self.sizes.fanout / 2 && weight <= self.sizes.node_bytes / 2)
    }

    /// Joins a child with the next one.
    pub(super) fn join(&mut self, parent: NodeId, left: usize) -> Result<()> {
        let children = self.nodes.here(parent).inner().children();
        let (into, from) = (children[left].id, children[left + 1].id);
        self.nodes.whole(into)?;
        let right = (**self.nodes.whole(from)?).clone();
        self.nodes.edit(into, |node| {
            node.upper = right.upper;
            match (&mut node.body, right.body) {
                (Body::Leaf(leaf), Body::Leaf(right)) => leaf.join(right),
                (Body::Inner(inner), Body::Inner(right)) => inner.join(right),
                _ => unreachable!("neighbours are equally high"),
            }
        });
        self.nodes.edit(parent, |parent| {
            let mut right = parent.inner_mut().children_mut().remove(left + 1);
            let waiting = right.take();
            parent.inner_mut().children_mut()[left].change(|buffer| buffer.receive(waiting));
        });
        self.nodes.free(from);
        Ok(())
    }
}
