//! The regular expression of `--metric`: a small matcher that backtracks.
//!
//! It knows literals, `.`, sets (`[a-z]`, `[^,]`), `\d \s \w` and their negations, `( )`, `(?: )`,
//! `|`, `* + ? {m,n}` and their lazy forms, and `^ $` at lines. One group is captured: the figure.
//! What it is not: fast on hard patterns, or whole.

use std::str::FromStr;

/// Longest repetition of what is more than one character: each one takes stack.
const REPEATS_MAX: u32 = 1000;

/// A pattern with exactly one capturing group.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    root: Node,
}

#[derive(Clone, Debug)]
enum Node {
    Set { is_negated: bool, ranges: Vec<(char, char)> },
    LineStart,
    LineEnd,
    Group { inner: Box<Node>, is_captured: bool },
    Either(Vec<Node>),
    Row(Vec<Node>),
    Repeat { inner: Box<Node>, least: u32, most: u32, is_lazy: bool },
}

impl Pattern {
    /// As it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A pattern with any number of groups, for [`Self::is_match`]. Errors: it cannot be parsed.
    pub fn parse_any(text: &str) -> Result<Self, String> {
        parse(text).map(|(root, _)| Self { text: text.to_owned(), root })
    }

    /// Whether the pattern matches any part of the text.
    pub fn is_match(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        (0..=text.len()).any(|start| step(&self.root, &text, start, &mut None, &mut |_, _| true))
    }

    /// What the group holds where the pattern first matches.
    pub fn find(&self, text: &str) -> Option<String> {
        let text: Vec<char> = text.chars().collect();
        (0..=text.len()).find_map(|start| {
            let mut found = None;
            let mut captured = None;
            step(&self.root, &text, start, &mut captured, &mut |_, captured| {
                found = *captured;
                true
            });
            found.map(|(from, to): (usize, usize)| text[from..to].iter().collect())
        })
    }
}

type Captured = Option<(usize, usize)>;
type Next<'a> = &'a mut dyn FnMut(usize, &mut Captured) -> bool;

fn is_one(node: &Node, found: char) -> bool {
    match node {
        Node::Set { is_negated, ranges } => {
            ranges.iter().any(|(from, to)| (*from..=*to).contains(&found)) != *is_negated
        }
        _ => false,
    }
}

/// Matches `node` at `at`, and then whatever `next` wants; says whether both did.
fn step(node: &Node, text: &[char], at: usize, captured: &mut Captured, next: Next<'_>) -> bool {
    match node {
        Node::Set { .. } => text.get(at).is_some_and(|found| is_one(node, *found)) && next(at + 1, captured),
        Node::LineStart => (at == 0 || text[at - 1] == '\n') && next(at, captured),
        Node::LineEnd => (at == text.len() || text[at] == '\n') && next(at, captured),
        Node::Group { inner, is_captured } => step(inner, text, at, captured, &mut |end, captured| {
            let before = *captured;
            if *is_captured {
                *captured = Some((at, end));
            }
            let is_matched = next(end, captured);
            if !is_matched {
                *captured = before;
            }
            is_matched
        }),
        Node::Either(ways) => ways.iter().any(|way| step(way, text, at, captured, next)),
        Node::Row(nodes) => row(nodes, text, at, captured, next),
        Node::Repeat { inner, least, most, is_lazy } if matches!(**inner, Node::Set { .. }) => {
            let most = usize::try_from(*most).unwrap_or(usize::MAX);
            let there = text[at..].iter().take(most).take_while(|found| is_one(inner, **found)).count();
            let mut counts = *least as usize..there + 1;
            match is_lazy {
                true => counts.any(|count| next(at + count, captured)),
                false => counts.rev().any(|count| next(at + count, captured)),
            }
        }
        Node::Repeat { inner, least, most, is_lazy } => {
            repeat(inner, (*least, (*most).min(REPEATS_MAX), *is_lazy), text, at, captured, next)
        }
    }
}

fn row(nodes: &[Node], text: &[char], at: usize, captured: &mut Captured, next: Next<'_>) -> bool {
    match nodes.split_first() {
        None => next(at, captured),
        Some((first, rest)) => {
            step(first, text, at, captured, &mut |end, captured| row(rest, text, end, captured, next))
        }
    }
}

fn repeat(
    inner: &Node,
    (least, most, is_lazy): (u32, u32, bool),
    text: &[char],
    at: usize,
    captured: &mut Captured,
    next: Next<'_>,
) -> bool {
    if least == 0 && is_lazy && next(at, captured) {
        return true;
    }
    let again = most > 0
        && step(inner, text, at, captured, &mut |end, captured| {
            // An empty match would repeat for ever.
            (end > at || least > 0)
                && repeat(inner, (least.saturating_sub(1), most - 1, is_lazy), text, end, captured, next)
        });
    again || least == 0 && !is_lazy && next(at, captured)
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match parse(text)? {
            (root, 1) => Ok(Self { text: text.to_owned(), root }),
            (_, groups) => {
                Err(format!("it needs exactly one group ( ) around the figure, and has {groups}; (?: ) does not count"))
            }
        }
    }
}

/// The tree of a pattern, and how many capturing groups it has.
fn parse(text: &str) -> Result<(Node, u32), String> {
    let mut parser = Parser { rest: text.chars().collect::<Vec<_>>().into_iter().peekable(), groups: 0 };
    let root = parser.either()?;
    match parser.rest.peek() {
        Some(_) => Err("a \")\" has no \"(\"".to_owned()),
        None => Ok((root, parser.groups)),
    }
}

struct Parser {
    rest: std::iter::Peekable<std::vec::IntoIter<char>>,
    groups: u32,
}

impl Parser {
    fn eat(&mut self, wanted: char) -> bool {
        self.rest.next_if_eq(&wanted).is_some()
    }

    fn either(&mut self) -> Result<Node, String> {
        let mut ways = vec![self.row()?];
        while self.eat('|') {
            ways.push(self.row()?);
        }
        Ok(Node::Either(ways))
    }

    fn row(&mut self) -> Result<Node, String> {
        let mut nodes = Vec::new();
        while let Some(found) = self.rest.next_if(|found| !matches!(found, '|' | ')')) {
            let node = self.one(found)?;
            nodes.push(self.repeated(node)?);
        }
        Ok(Node::Row(nodes))
    }

    fn one(&mut self, found: char) -> Result<Node, String> {
        let set = |is_negated, ranges| Node::Set { is_negated, ranges };
        Ok(match found {
            '.' => set(true, vec![('\n', '\n')]),
            '^' => Node::LineStart,
            '$' => Node::LineEnd,
            '(' => {
                let is_captured = !self.eat('?');
                if !is_captured && !self.eat(':') {
                    return Err("of groups with (? only (?: ) is known".to_owned());
                }
                self.groups += u32::from(is_captured);
                let inner = Box::new(self.either()?);
                if !self.eat(')') {
                    return Err("a \"(\" has no \")\"".to_owned());
                }
                Node::Group { inner, is_captured }
            }
            '[' => self.set()?,
            '\\' => {
                let (is_negated, ranges) = self.escaped()?;
                set(is_negated, ranges)
            }
            '*' | '+' | '?' | '{' => {
                return Err(format!("there is nothing before {found:?} to repeat; write \\{found} for the character"));
            }
            other => set(false, vec![(other, other)]),
        })
    }

    fn escaped(&mut self) -> Result<(bool, Vec<(char, char)>), String> {
        let found = self.rest.next().ok_or("a \\ stands at the end")?;
        let ranges = match found.to_ascii_lowercase() {
            'd' => vec![('0', '9')],
            's' => vec![(' ', ' '), ('\t', '\r')],
            'w' => vec![('a', 'z'), ('A', 'Z'), ('0', '9'), ('_', '_')],
            _ => {
                let plain = match found {
                    'n' => '\n',
                    't' => '\t',
                    other if other.is_ascii_alphanumeric() => return Err(format!("\\{other} is not known")),
                    other => other,
                };
                return Ok((false, vec![(plain, plain)]));
            }
        };
        Ok((found.is_ascii_uppercase(), ranges))
    }

    fn set(&mut self) -> Result<Node, String> {
        let is_negated = self.eat('^');
        let mut ranges = Vec::new();
        loop {
            let from = match self.rest.next().ok_or("a \"[\" has no \"]\"")? {
                ']' if !ranges.is_empty() => return Ok(Node::Set { is_negated, ranges }),
                '\\' => {
                    let (is_other, found) = self.escaped()?;
                    if is_other {
                        return Err("\\D, \\S and \\W are not known in a set".to_owned());
                    }
                    ranges.extend(found);
                    continue;
                }
                found => found,
            };
            let mut to = from;
            if self.eat('-') {
                match self.rest.next().ok_or("a \"[\" has no \"]\"")? {
                    // A "-" at the end is one.
                    ']' => {
                        ranges.extend([(from, from), ('-', '-')]);
                        return Ok(Node::Set { is_negated, ranges });
                    }
                    found => to = found,
                }
            }
            ranges.push((from, to));
        }
    }

    fn number(&mut self) -> Option<u32> {
        let mut digits = String::new();
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        digits.parse().ok()
    }

    fn repeated(&mut self, node: Node) -> Result<Node, String> {
        let (least, most) = match self.rest.next_if(|found| matches!(found, '*' | '+' | '?' | '{')) {
            None => return Ok(node),
            Some('*') => (0, u32::MAX),
            Some('+') => (1, u32::MAX),
            Some('?') => (0, 1),
            Some(_) => {
                let wrong = "after \"{\" follows N}, N,} or N,M}; a brace itself is \\{";
                let least = self.number().ok_or(wrong)?;
                let most = if self.eat(',') { self.number().unwrap_or(u32::MAX) } else { least };
                if !self.eat('}') || most < least {
                    return Err(wrong.to_owned());
                }
                (least, most)
            }
        };
        let is_lazy = self.eat('?');
        Ok(Node::Repeat { inner: Box::new(node), least, most, is_lazy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pattern: &str, text: &str) -> Option<String> {
        pattern.parse::<Pattern>().unwrap().find(text)
    }

    #[test]
    fn the_group_of_the_first_match_is_the_figure() {
        for (pattern, text, wanted) in [
            (r"IOPS=(\d+)", "read: IOPS=1203, BW=4\nIOPS=7", Some("1203")),
            (r"(\d+(?:\.\d+)?) ops/s", "runs 3\n12.75 ops/s", Some("12.75")),
            (r"^total:\s+([0-9.]+)$", "subtotal: 1\ntotal:   2.5\nend", Some("2.5")),
            (r"a.*(\d)", "a12\na3", Some("2")),
            (r"a.*?(\d)", "a12", Some("1")),
            (r"(?:x|yy){2}(.)", "xyyz", Some("z")),
            (r"(?:x|yy){2}(.)", "xz", None),
            (r"([^,]+),b", "one,two,b", Some("two")),
            (r"[\d-]+[a-c]([]x]?)!", "1-2b]!", Some("]")),
            (r"(\S+)\.\)", "is 5e3.)", Some("5e3")),
            (r"(?:(?:a?)*)*(b)", "aaab", Some("b")),
            (r"(é+)", "caféé", Some("éé")),
            (r"(\d+)", "none", None),
        ] {
            assert_eq!(find(pattern, text).as_deref(), wanted, "{pattern} in {text:?}");
        }
    }

    #[test]
    fn long_texts_take_no_stack() {
        let text = format!("{}7", "x".repeat(1 << 20));
        assert_eq!(find(r"^[^y]*(\d)", &text).as_deref(), Some("7"));
    }

    #[test]
    fn what_is_no_pattern_with_one_group_is_refused() {
        for pattern in ["", r"\d+", "(a)(b)", "(a", "a)", "*(a)", "[(a)", r"(a)\", "(?=a)(b)", "(a){2,1}", r"(\b)"] {
            assert!(pattern.parse::<Pattern>().is_err(), "{pattern}");
        }
    }
}
