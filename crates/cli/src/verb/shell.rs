//! Words of a shell.

use std::{ffi::OsString, path::Path};

/// Quotes a path as a word of a shell.
pub fn shell_word(path: &Path) -> String {
    quote(&path.display().to_string())
}

/// Quotes a text as a word of a shell.
pub fn quote(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// A command line with more options, which are before a `--`.
pub fn command_with(words: &[OsString], options: &[(&str, &str)]) -> String {
    let words: Vec<String> = words.iter().map(|word| quote(&word.to_string_lossy())).collect();
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let options = options.iter().map(|(name, value)| format!("{name} {value}"));
    words[..end].iter().cloned().chain(options).chain(words[end..].iter().cloned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{command_with, quote};

    #[test]
    fn options_are_before_the_command_of_a_command_line() {
        let options = [("--on", "src"), ("--log", "l")];
        for (words, line) in [
            ("senesce record -- make -j2", "senesce record --on src --log l -- make -j2"),
            ("senesce replay a.log", "senesce replay a.log --on src --log l"),
        ] {
            let words: Vec<_> = words.split(' ').map(Into::into).collect();
            assert_eq!(command_with(&words, &options), line);
        }
    }

    #[test]
    fn words_with_special_characters_are_quoted() {
        assert_eq!(
            ["/a/b-1.c", "", "a b", "it's", "$(x)"].map(quote),
            ["/a/b-1.c", "''", "'a b'", "'it'\\''s'", "'$(x)'"]
        );
    }
}
