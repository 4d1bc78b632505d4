//! Messages about the text of a plan, in the words of its author.

/// The message of an error of syntax, with the line of the plan.
pub(super) fn explain(error: &toml::de::Error) -> String {
    explain_types(&shorten_lines(&error.to_string()))
}

/// Replaces the names of Rust's types in a message of serde.
fn explain_types(text: &str) -> String {
    let whole = ["u64", "u32", "u16", "u8", "usize"].iter().fold(text.to_owned(), |text, name| {
        text.replace(&format!("expected {name}"), "expected a whole number, 0 or more")
            .replace(&format!("expected a nonzero {name}"), "expected a whole number, 1 or more")
    });
    whole.replace("expected f64", "expected a number")
}

/// Cuts each line of a message to 160 characters. It quotes a line of the plan, which may have
/// millions of characters.
fn shorten_lines(text: &str) -> String {
    let lines: Vec<String> = text.trim_end().lines().map(|line| line.chars().take(160).collect()).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::plan::Plan;

    const SMALL: &str =
        "format = \"senesce-plan/1\"\nname = \"t\"\n[history]\nrepo = \"/r\"\n[[file_system]]\nkind = \"ext4\"\n";

    fn error(text: &str) -> String {
        Plan::parse(Path::new("p.toml"), text).unwrap_err().to_string()
    }

    #[test]
    fn a_foreign_file_system_has_no_near_name() {
        let said = error(&SMALL.replace("\"ext4\"", "\"zfs\""));
        assert!(said.contains("senesce does not support `zfs` yet") && !said.contains("did you mean"), "{said}");
        let said = error(&SMALL.replace("\"ext4\"", "\"btrf\""));
        assert!(said.contains("did you mean `btrfs`?"), "{said}");
    }

    #[test]
    fn types_are_in_plain_words() {
        let said = error(&SMALL.replace("[[file", "[measure]\nevery = \"x\"\n[[file"));
        assert!(said.contains("invalid type: string \"x\", expected a whole number, 0 or more"), "{said}");
        let said = error(&SMALL.replace("[[file", "[measure]\nevery = 0\n[[file"));
        assert!(said.contains("measure.every: is 0; write the number of steps"), "{said}");
    }
}
