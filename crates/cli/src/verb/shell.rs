//! Words of a shell.

use std::path::Path;

/// Quotes a path as a word of a shell.
pub(super) fn shell_word(path: &Path) -> String {
    quote(&path.display().to_string())
}

/// Quotes a text as a word of a shell.
pub(super) fn quote(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn words_with_special_characters_are_quoted() {
        assert_eq!(
            ["/a/b-1.c", "", "a b", "it's", "$(x)"].map(quote),
            ["/a/b-1.c", "''", "'a b'", "'it'\\''s'", "'$(x)'"]
        );
    }
}
