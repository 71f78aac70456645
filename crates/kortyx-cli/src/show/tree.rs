//! Trees of lines.

/// How deep a tree is drawn: data that says otherwise is broken.
const DEEPEST: usize = 64;

/// A line with lines beneath it.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) line: String,
    pub(crate) below: Vec<Tree>,
}

impl Tree {
    pub(crate) fn new(line: impl Into<String>) -> Self {
        Self { line: line.into(), below: Vec::new() }
    }

    pub(crate) fn push(&mut self, below: impl Into<Tree>) {
        self.below.push(below.into());
    }

    pub(crate) fn render(&self) -> String {
        let mut text = format!("{}\n", self.line);
        self.render_below("", 0, &mut text);
        text
    }

    fn render_below(&self, indent: &str, depth: usize, text: &mut String) {
        for (at, tree) in self.below.iter().enumerate() {
            let (turn, next) = if at + 1 == self.below.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            text.push_str(indent);
            text.push_str(turn);
            text.push_str(&tree.line);
            text.push('\n');
            if depth < DEEPEST {
                tree.render_below(&format!("{indent}{next}"), depth + 1, text);
            }
        }
    }
}

impl From<String> for Tree {
    fn from(line: String) -> Self {
        Self::new(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_draws_its_lines_beneath_each_other() {
        let mut tree = Tree::new("run");
        let mut node = Tree::new("node");
        node.push("step".to_owned());
        tree.push(node);
        tree.push("end".to_owned());
        assert_eq!(tree.render(), "run\n├─ node\n│  └─ step\n└─ end\n");
    }
}
