//! A summary in plain code: the sentences whose words matter most.

use std::collections::HashMap;

const SENTENCES: usize = 2;

/// The best sentences of a text, in their order; words of `about` count ten times.
pub(crate) fn summarize(text: &str, about: &str) -> String {
    let sentences: Vec<&str> = text.split_inclusive(['.', '!', '?']).map(str::trim).filter(|s| !s.is_empty()).collect();
    let mut weights: HashMap<String, usize> = HashMap::new();
    for word in words(text) {
        *weights.entry(word).or_default() += 1;
    }
    for word in words(about) {
        *weights.entry(word).or_default() += 10 * sentences.len();
    }
    let score = |sentence: &str| {
        let words: Vec<String> = words(sentence).collect();
        let sum: usize = words.iter().filter_map(|word| weights.get(word)).sum();
        sum * 100 / words.len().max(8)
    };
    let mut ranked: Vec<usize> = (0..sentences.len()).collect();
    ranked.sort_by_key(|at| std::cmp::Reverse(sentences.get(*at).map_or(0, |sentence| score(sentence))));
    ranked.truncate(SENTENCES);
    ranked.sort_unstable();
    let best: Vec<&str> = ranked.iter().filter_map(|at| sentences.get(*at).copied()).collect();
    best.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Words that carry meaning: longer than four letters, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let word = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    text.split_whitespace().map(word).filter(|word| word.chars().count() > 4)
}
