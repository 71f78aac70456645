//! The tree that people read.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kortyx_protocol::{RequestId, Timestamp};

use super::{AskedRow, CallRow, FrameRow, TraceView, VisitRow};
use crate::{
    command::view::InterruptView,
    report::Show,
    show::{
        Tree,
        paint::{bad, bold, clean, dim, good, open, span, status},
    },
};

/// Differences up to here are shown with their milliseconds.
const FINE: Duration = Duration::from_secs(10);

impl Show for TraceView {
    fn show(&self) -> String {
        let run = &self.run;
        let workflow = clean(&format!("{}@{}", run.workflow, run.workflow_version)).into_owned();
        let mut root = Tree::new(format!("{} {} {workflow}", bold(run.id.as_str()), status(run.status)));
        root.push(format!("{} durable since {}", dim("•"), run.created_at));
        if let Some(why) = &self.unreadable {
            root.push(bad(clean(why).into_owned()).to_string());
        }
        let mut drawn = BTreeSet::new();
        match self.frames.first() {
            Some(frame) => self.draw_frame(frame, &mut root, &mut drawn),
            None => self.draw_past(|_| true, &mut root),
        }
        root.push(self.end());
        root.render()
    }
}

impl TraceView {
    /// What became of the run, or what it waits for.
    fn end(&self) -> String {
        let run = &self.run;
        let at = self.offset(run.updated_at);
        let more = match (&run.failure, &run.reason) {
            (Some(failure), _) => format!(": {} {}", failure.code.as_str(), clean(&failure.message)),
            (None, Some(reason)) => format!(": {}", clean(reason)),
            (None, None) if run.is_orphan => ": nobody drives it".to_owned(),
            (None, None) => String::new(),
        };
        format!("{} {at}{more}", status(run.status))
    }

    /// How long after the run's beginning.
    fn offset(&self, at: Timestamp) -> String {
        let after = at.since(self.run.created_at);
        let text = if after < FINE { format!("+{:.3}s", after.as_secs_f64()) } else { format!("+{}", span(after)) };
        dim(text).to_string()
    }

    fn draw_frame(&self, frame: &FrameRow, tree: &mut Tree, drawn: &mut BTreeSet<u32>) {
        // Whatever a broken state says, no frame is drawn within itself.
        if !drawn.insert(frame.id) {
            return;
        }
        let visits: Vec<&VisitRow> = self.activations.iter().filter(|visit| visit.frame == frame.id).collect();
        Self::draw_ended(frame, &visits, tree);
        if frame.caller.is_none() {
            let shown: BTreeSet<u32> = self.activations.iter().map(|visit| visit.id).collect();
            self.draw_past(|activation| activation.is_none_or(|activation| !shown.contains(&activation)), tree);
        }
        for visit in visits {
            tree.push(self.visit(visit, drawn));
        }
    }

    /// Nodes of which only the number of visits is kept.
    fn draw_ended(frame: &FrameRow, visits: &[&VisitRow], tree: &mut Tree) {
        let mut ended: BTreeMap<&str, u32> =
            frame.visits.iter().map(|(place, count)| (place.as_str(), *count)).collect();
        for visit in visits {
            if let Some(count) = ended.get_mut(format!("{}/{}", frame.workflow, visit.node).as_str()) {
                *count = count.saturating_sub(1);
            }
        }
        for (place, count) in ended.into_iter().filter(|(_, count)| *count > 0) {
            let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
            tree.push(format!("{} {}", clean(place), dim(format!("ended, {times}"))));
        }
    }

    /// Questions of visits that are over.
    fn draw_past(&self, is_past: impl Fn(Option<u32>) -> bool, tree: &mut Tree) {
        let mut visits: BTreeMap<Option<u32>, Vec<&AskedRow>> = BTreeMap::new();
        for asked in self.interrupts.iter().filter(|asked| is_past(asked.activation)) {
            visits.entry(asked.activation).or_default().push(asked);
        }
        for asked in visits.into_values() {
            let Some(first) = asked.first() else { continue };
            let place = format!("{}/{}", first.interrupt.workflow, first.interrupt.node);
            let mut visit = Tree::new(format!("{} {}", bold(clean(&place).into_owned()), dim("over")));
            for asked in asked {
                visit.push(self.question(&asked.interrupt));
            }
            tree.push(visit);
        }
    }

    fn visit(&self, visit: &VisitRow, drawn: &mut BTreeSet<u32>) -> Tree {
        let began = visit.began_at.map(|at| format!(" {}", self.offset(at))).unwrap_or_default();
        let again = if visit.visit > 0 {
            dim(format!(" visit {}", visit.visit.saturating_add(1))).to_string()
        } else {
            String::new()
        };
        let limit = if visit.is_about_a_limit { open(" at a limit").to_string() } else { String::new() };
        let tries = match visit.failed_attempts {
            0 => String::new(),
            failed => bad(format!(" {failed} attempts failed")).to_string(),
        };
        let name = bold(clean(&visit.node).into_owned());
        let mut tree = Tree::new(format!("{name}{again} {}{began}{tries}{limit}", status(visit.standing)));
        for call in &visit.calls {
            tree.push(self.call(call, drawn));
        }
        tree
    }

    fn call(&self, call: &CallRow, drawn: &mut BTreeSet<u32>) -> Tree {
        if let Some(question) = call.interrupt.as_ref().and_then(|id| self.asked(id)) {
            return Tree::new(self.question(question));
        }
        let again =
            if call.occurrence > 0 { format!(" #{}", call.occurrence.saturating_add(1)) } else { String::new() };
        let ended = call.ended_at.map(|at| format!(" {}", self.offset(at))).unwrap_or_default();
        let identity = if call.identity.is_empty() { String::new() } else { format!(" {}", clean(&call.identity)) };
        let line = format!("{} {}{again}{identity} {}{ended}", dim(call.kind), clean(&call.id), status(call.standing));
        let mut tree = Tree::new(line);
        let frame = call.frame.and_then(|id| self.frames.iter().find(|frame| frame.id == id));
        if let Some(frame) = frame {
            self.draw_frame(frame, &mut tree, drawn);
        }
        tree
    }

    fn asked(&self, id: &RequestId) -> Option<&InterruptView> {
        self.interrupts.iter().map(|asked| &asked.interrupt).find(|question| question.id == *id)
    }

    /// Who was asked what, and who answered what.
    fn question(&self, question: &InterruptView) -> String {
        let name = clean(question.ask_id.as_deref().unwrap_or("?")).into_owned();
        let kind = question.ask_kind.unwrap_or("does not read");
        let asked = self.offset(question.created_at);
        let closed = question.answered.as_ref().map(|answered| {
            let at = answered.at.map(|at| format!(" {}", self.offset(at))).unwrap_or_default();
            let by = match (&answered.actor, answered.by_default) {
                (_, true) => " by default".to_owned(),
                (Some(actor), _) => format!(" by {}", good(clean(actor))),
                (None, _) => String::new(),
            };
            format!("{at}{by}")
        });
        let left = (question.status == "pending" && question.expires_at > self.now)
            .then(|| format!(", {} left", span(question.expires_at.since(self.now))));
        let content = question.content.as_ref().map(|content| {
            let text = question.text().map(|text| format!(" “{}”", clean(text))).unwrap_or_default();
            let answer =
                content.answer.as_ref().map(|answer| format!(" → {}", clean(&answer.to_string()))).unwrap_or_default();
            format!("{text}{answer}")
        });
        format!(
            "{} {} {} asked {asked} {}{}{}{} {}",
            open("?"),
            bold(name),
            dim(format!("({kind})")),
            status(question.status),
            closed.unwrap_or_default(),
            left.unwrap_or_default(),
            content.unwrap_or_default(),
            dim(question.id.as_str()),
        )
    }
}
