//! The picture of a tree: without leaves, with one leaf, with ten thousand, and of a damaged one.

#[path = "common/tree.rs"]
mod sample;

use senesce_report::{TreeOptions, render_tree, render_tree_svg, tree_screen};
use serde_json::{Value, json};

fn page(tree: &Value) -> String {
    render_tree(tree, &TreeOptions::default()).unwrap()
}

#[test]
fn every_node_has_bar_every_leaf_mark() {
    let tree = sample::tree(40);
    let svg = render_tree_svg(&tree);
    assert_eq!(svg, render_tree_svg(&tree), "the same for the same tree");
    assert!(svg.contains("Tree of evergreen:/srv/&lt;e&gt;.img") && !svg.contains("var(") && !svg.contains("NaN"));
    // Three inner nodes below a root.
    assert_eq!(svg.matches(r#"class="tree-node""#).count(), 4);
    for title in ["Root, level 2", "Level 1: 3 nodes", "Leaves: 40", "Where leaves are", "How full leaves are"] {
        assert!(svg.contains(&format!(">{title}<")), "{title}");
    }
    // Below the levels a mark is a part of a path.
    let marks: usize = ["tree-contents", "tree-metadata"]
        .into_iter()
        .filter_map(|class| svg.split(&format!(r#"<path class="{class}" d=""#)).nth(1))
        .map(|path| path.split('"').next().unwrap().matches('M').count())
        .sum();
    assert_eq!(marks, 40);
    // A leaf's bar is on the scale of a node: 2 MiB of 4 are half of 60 px.
    assert!(svg.contains(r#"height="30.0"/>"#), "{svg}");
    let page = page(&tree);
    for told in ["level 2 to level 1", "30 MiB", "768 KiB", "40 leaves are"] {
        assert!(page.contains(told), "{told}");
    }
    assert!(page.contains("0% of the leaves start on the device"), "there is a gap of 1 MiB after each");
}

#[test]
fn level_without_waiting_messages_has_no_scale() {
    let mut tree = sample::tree(40);
    let strip = |tree: &Value| {
        let svg = render_tree_svg(tree);
        svg.split(">Root, level 2<").nth(1).unwrap().split("</g>").next().unwrap().to_owned()
    };
    let lines = |strip: &str| strip.matches(r#"class="grid""#).count();
    assert_eq!(lines(&strip(&tree)), 2);
    for node in tree["nodes"].as_array_mut().unwrap().iter_mut().filter(|node| node["height"] == 1) {
        node["waiting_bytes"] = json!(0);
    }
    let root = strip(&tree);
    assert_eq!(lines(&root), 1, "{root}");
    assert!(root.contains(">0</text>") && !root.contains(">0 B<"), "{root}");
}

#[test]
fn leaves_that_lie_behind_each_other_are_told() {
    let mut tree = sample::tree(5);
    let leaves = tree["nodes"].as_array_mut().unwrap().iter_mut().filter(|node| node["height"] == 0);
    for (number, leaf) in leaves.enumerate() {
        let at = number as u64 * 100 + u64::from(number == 2);
        leaf["extents"] = json!([[at, 40], [at + 40, if number == 1 { 61 } else { 60 }]]);
    }
    // Of four leaves after the first, the one after the third is not adjacent.
    let text = tree_screen(&tree);
    assert!(text.contains("75% of the leaves start on the device") && text.contains("2.00 pieces"), "{text}");
    assert!(text.contains("The tree is badly aged: on a disk,"), "a seek for 100 bytes: {text}");
}

#[test]
fn trees_without_leaves_and_with_one_are_drawn() {
    let none = json!({ "nodes": [] });
    assert!(render_tree_svg(&none).contains("no leaf that can be read"));
    assert!(page(&none).contains("<h1>–</h1>"));
    let one = sample::tree(1);
    assert!(page(&one).contains("The only leaf is 50% full."), "{}", tree_screen(&one));
    assert!(render_tree_svg(&one).contains(">Leaves: 1<"));
}

#[test]
fn ten_thousand_leaves_share_bars() {
    let tree = sample::tree(10_000);
    let svg = render_tree_svg(&tree);
    let strip = svg.split(">Leaves: 10,000<").nth(1).unwrap().split("</g>").next().unwrap();
    let bars = strip.matches(r#"class="column""#).count();
    assert!((300..=560).contains(&bars), "{bars}");
    assert!(strip.contains("leaves 1 to 19 of 10,000"));
    assert!(svg.len() < 1 << 20, "{} bytes", svg.len());
}

#[test]
fn damaged_nodes_are_told_and_keep_their_places() {
    let mut tree = sample::tree(40);
    let nodes = tree["nodes"].as_array_mut().unwrap();
    // The last inner node cannot be read: its leaves are not known.
    let lost = nodes.iter().rposition(|node| node["height"] == 1).unwrap();
    nodes.truncate(lost + 1);
    nodes[lost]["damage"] = json!("node: header sum is 0x1, expected 0x2");
    nodes[lost]["weight_bytes"] = json!(0);
    let (svg, page) = (render_tree_svg(&tree), page(&tree));
    assert_eq!(svg.matches(r#"class="tree-damaged""#).count(), 1);
    assert!(svg.contains(">Level 1: 3 nodes, 1 damaged<") && svg.contains(">Leaves: 32<"));
    let id = lost + 1;
    let told = format!("Node {id}, level 1, cannot be read, or not all of it: node: header sum is 0x1, expected 0x2");
    assert!(page.contains(&told) && tree_screen(&tree).contains(&told));
}
