//! The cases in files.

use super::{Difference, Make, story::tell};

/// Every file of cases: its name and its text. A case starts with a line `== title`, and is a
/// story (see [`tell`]).
pub const CASES: [(&str, &str); 7] = [
    ("names", include_str!("../../cases/names.txt")),
    ("renames", include_str!("../../cases/renames.txt")),
    ("contents", include_str!("../../cases/contents.txt")),
    ("clones", include_str!("../../cases/clones.txt")),
    ("attributes", include_str!("../../cases/attributes.txt")),
    ("xattrs", include_str!("../../cases/xattrs.txt")),
    ("orphans", include_str!("../../cases/orphans.txt")),
];

/// Runs every case on a new file system.
///
/// Errors: the first different line of each case.
pub fn run_cases(make: Make<'_>) -> Result<(), Difference> {
    let mut problems = Vec::new();
    for (file, text) in CASES {
        for case in text.split("\n== ").skip(1) {
            let (title, story) = case.split_once('\n').unwrap_or((case, ""));
            let mut subject = make();
            let told = tell(subject.as_mut(), story);
            let at = story.trim_end().lines().zip(told.trim_end().lines()).position(|(want, got)| want != got);
            let lines = (story.trim_end().lines().count(), told.trim_end().lines().count());
            let at = at.or((lines.0 != lines.1).then_some(lines.0.min(lines.1)));
            if let Some(at) = at {
                let line = |text: &str| text.lines().nth(at).unwrap_or("(nothing)").to_owned();
                let command = story.lines().take(at + 1).filter(|line| !line.starts_with("  ")).last().unwrap_or("");
                let (want, got) = (line(story), line(&told));
                problems.push(format!("{file}: {title}: {command:?} answers {got:?} and not {want:?}"));
            }
            if let Err(problem) = subject.check() {
                problems.push(format!("{file}: {title}: {problem}"));
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Difference(problems.join("\n"))) }
}
