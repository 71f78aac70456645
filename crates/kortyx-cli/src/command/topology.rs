//! The nodes and edges of a workflow file.

use std::{fmt::Write as _, path::Path};

use kortyx_runtime::{
    Workflow,
    workflow::{Definition, END, Edge, NodeLibrary, When},
};
use serde::Serialize;

use crate::{
    arguments::Form,
    error::CliError,
    report::{Report, Show},
    show::{
        Tree,
        paint::{bold, clean, dim, open},
    },
};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TopologyView {
    id: String,
    version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    fingerprint: String,
    start: String,
    /// Some node can select two edges at once; then there is no loop.
    is_parallel: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_node_executions: Option<u32>,
    nodes: Vec<NodeView>,
    edges: Vec<EdgeView>,
    #[serde(skip)]
    form: Form,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeView {
    name: String,
    /// How often it is tried; 1 without a retry.
    attempts: u32,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct EdgeView {
    from: String,
    /// A node, or `__end__`.
    to: String,
    /// `always`, `condition` or `otherwise`.
    when: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<String>,
}

/// Reads a workflow file and draws it.
pub(super) fn draw(file: &Path, form: Form) -> Result<Report, CliError> {
    let workflow = Workflow::from_file(file, &NodeLibrary::of_shapes());
    let workflow = workflow.map_err(|error| CliError::File(error.to_string()))?;
    Report::new("topology", &TopologyView::of(workflow.definition(), form))
}

impl TopologyView {
    fn of(definition: &Definition, form: Form) -> Self {
        let nodes = definition.nodes().map(|node| NodeView {
            name: node.name.to_string(),
            attempts: node.options.retry.as_ref().map_or(1, |retry| retry.attempts),
        });
        Self {
            id: definition.id().to_string(),
            version: definition.version().to_string(),
            description: definition.description().map(str::to_owned),
            fingerprint: definition.fingerprint().to_owned(),
            start: definition.start().to_string(),
            is_parallel: definition.is_parallel(),
            max_node_executions: definition.max_node_executions(),
            nodes: nodes.collect(),
            edges: definition.edges().map(EdgeView::of).collect(),
            form,
        }
    }

    fn tree(&self) -> String {
        let kind = if self.is_parallel { "branches run side by side" } else { "one node at a time" };
        let title = format!("{} {}", bold(clean(&format!("{}@{}", self.id, self.version))), dim(kind));
        let mut root = Tree::new(title);
        for node in &self.nodes {
            let start = if node.name == self.start { open(" (start)").to_string() } else { String::new() };
            let retry = if node.attempts > 1 {
                dim(format!(" up to {} attempts", node.attempts)).to_string()
            } else {
                String::new()
            };
            let mut tree = Tree::new(format!("{}{start}{retry}", bold(clean(&node.name))));
            let mut edges: Vec<_> = self.edges.iter().filter(|edge| edge.from == node.name).collect();
            edges.sort_by_key(|edge| edge.when == "otherwise");
            for edge in edges {
                let target = if edge.to == END { dim("end").to_string() } else { clean(&edge.to).into_owned() };
                let label = edge.label().map(|label| format!("{} ", open(clean(label)))).unwrap_or_default();
                tree.push(format!("{label}→ {target}"));
            }
            root.push(tree);
        }
        root.render()
    }

    fn dot(&self) -> String {
        let mut text = format!("digraph {} {{\n  node [shape=box];\n", quoted(&self.id));
        for node in &self.nodes {
            let shape = if node.name == self.start { " [style=bold]" } else { "" };
            let _ = writeln!(text, "  {}{shape};", quoted(&node.name));
        }
        let _ = writeln!(text, "  {} [label=\"end\", shape=doublecircle];", quoted(END));
        for edge in &self.edges {
            let label = edge.label().map(|label| format!(" [label={}]", quoted(label))).unwrap_or_default();
            let _ = writeln!(text, "  {} -> {}{label};", quoted(&edge.from), quoted(&edge.to));
        }
        text.push_str("}\n");
        text
    }

    fn mermaid(&self) -> String {
        let number = |name: &str| self.nodes.iter().position(|node| node.name == name);
        let id = |name: &str| number(name).map_or_else(|| "finish".to_owned(), |number| format!("n{number}"));
        let mut text = "flowchart TD\n".to_owned();
        for node in &self.nodes {
            let _ = writeln!(text, "  {}[\"{}\"]", id(&node.name), entities(&node.name));
        }
        text.push_str("  finish((end))\n");
        for edge in &self.edges {
            let label = edge.label().map(|label| format!("|\"{}\"|", entities(label))).unwrap_or_default();
            let _ = writeln!(text, "  {} -->{label} {}", id(&edge.from), id(&edge.to));
        }
        text
    }
}

impl EdgeView {
    fn of(edge: &Edge) -> Self {
        let (when, condition) = match &edge.when {
            When::Always => ("always", None),
            When::Condition(condition) => ("condition", Some(condition.to_string())),
            When::Otherwise => ("otherwise", None),
        };
        Self { from: edge.from.to_string(), to: edge.to.as_str().to_owned(), when, condition }
    }

    fn label(&self) -> Option<&str> {
        self.condition.as_deref().or((self.when == "otherwise").then_some("otherwise"))
    }
}

impl Show for TopologyView {
    fn show(&self) -> String {
        match self.form {
            Form::Tree => self.tree(),
            Form::Dot => self.dot(),
            Form::Mermaid => self.mermaid(),
        }
    }
}

/// A text as Graphviz reads it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", clean(text).replace('\\', "\\\\").replace('"', "\\\""))
}

/// A text as Mermaid reads it within quotes.
fn entities(text: &str) -> String {
    clean(text).replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}
