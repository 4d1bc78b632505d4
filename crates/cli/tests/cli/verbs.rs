//! Rules for the help of every verb.

use super::lab::Lab;

/// Verbs without `--dry-run`, and the reason.
const WITHOUT_DRY_RUN: &[(&str, &str)] = &[
    ("grep", "it only reads"),
    ("forecast", "it only reads"),
    ("device list", "it only prints"),
    ("device show", "it only prints"),
    ("profile list", "it only prints"),
    ("profile show", "it only prints"),
    ("profile diff", "it only prints"),
    ("show", "it only prints"),
    ("compare", "it only reads"),
    ("verify-bundle", "it only reads"),
    ("campaign task", "its plan is checked by `campaign plan --dry-run`, and a second attempt continues the first"),
    ("campaign status", "it only prints"),
    ("bench personality list", "it only prints"),
    ("bench personality show", "it only prints"),
    ("image list", "it only prints"),
    ("image verify", "it only reads"),
    ("log show", "it only prints"),
    ("log stat", "it only prints"),
    ("log verify", "it only reads"),
    ("kernels", "it only prints"),
    ("schema", "it only prints"),
    ("completions", "it only prints"),
    ("fs mount", "a mount ends with the command"),
    ("fs stat", "it only prints"),
    ("fs figures", "it only prints"),
    ("fs volume list", "it only prints"),
    ("fs snapshot list", "it only prints"),
    ("fs diff", "it only reads"),
    ("fs sync", "it only makes durable what programs wrote"),
];

/// Every verb has an example in its help. Every verb that makes or removes something has
/// `--dry-run`. A new verb without it must be in the list, with the reason.
#[test]
fn verbs_have_examples_and_dry_runs() {
    let text = Lab::new().run(["man", "--markdown"]).good().stdout;
    let sections: Vec<(&str, &str)> =
        text.split("\n## senesce ").skip(1).filter_map(|part| part.split_once('\n')).collect();
    let is_leaf = |verb: &str| !sections.iter().any(|(other, _)| other.starts_with(&format!("{verb} ")));
    let leaves: Vec<_> = sections.iter().filter(|(verb, _)| is_leaf(verb) && !verb.starts_with("fs dump ")).collect();
    assert!(leaves.len() > 60, "{leaves:?}");
    let mut listed = 0;
    for (verb, options) in leaves {
        assert!(options.contains("\nExample"), "{verb} has no example");
        let exception = WITHOUT_DRY_RUN.iter().find(|(name, _)| name == verb);
        listed += usize::from(exception.is_some());
        match (options.contains("--dry-run\n"), exception) {
            (false, None) => panic!("{verb} has no --dry-run, and no reason is listed"),
            (true, Some((_, reason))) => panic!("{verb} has --dry-run, and a reason against it: {reason}"),
            _ => {}
        }
    }
    assert_eq!(listed, WITHOUT_DRY_RUN.len(), "the list names verbs that do not exist");
}
