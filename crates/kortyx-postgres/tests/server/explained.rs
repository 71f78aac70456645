//! The plans of the statements that a store runs, inside of functions too, as `auto_explain` reports them to the client.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Mutex, Once, PoisonError},
};

use serde_json::Value;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::world::{World, connect, url_of};

/// Where the driver puts what a server says beside its answers.
const NOTICES: &str = "sqlx::postgres::notice";

/// A user for whom the server explains every statement that it runs.
pub(crate) struct Explained {
    name: String,
}

impl Explained {
    /// Makes the user, and begins to listen.
    pub(crate) async fn user(world: &World) -> Self {
        static LISTEN: Once = Once::new();
        LISTEN.call_once(|| tracing::subscriber::set_global_default(Listener).unwrap());
        let name = format!("explained_{}", world.schema);
        let settings = [
            ("session_preload_libraries", "auto_explain"),
            ("auto_explain.log_min_duration", "0"),
            ("auto_explain.log_nested_statements", "on"),
            ("auto_explain.log_format", "json"),
            ("client_min_messages", "log"),
        ];
        let settings = settings.map(|(setting, value)| format!("ALTER ROLE {name} SET {setting} = '{value}'"));
        let user = format!("CREATE ROLE {name} LOGIN SUPERUSER PASSWORD 'explained'");
        world.execute(&[&[user], settings.as_slice()].concat().join("; ")).await;
        Self { name }
    }

    /// The server's address for this user.
    pub(crate) fn url(&self) -> String {
        url_of(&self.name, "explained")
    }

    /// Drops the user, and gives what it ran.
    pub(crate) async fn plans(self) -> Vec<Plan> {
        let sql = sqlx::AssertSqlSafe(format!("DROP ROLE {}", self.name));
        sqlx::raw_sql(sql).execute(&mut connect().await).await.unwrap();
        std::mem::take(&mut *PLANS.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How a statement was run.
pub(crate) struct Plan(Value);

impl Plan {
    /// The statement.
    pub(crate) fn statement(&self) -> &str {
        self.0["Query Text"].as_str().unwrap()
    }

    /// The tables that it read in this way.
    pub(crate) fn tables(&self, is_meant: fn(&str) -> bool) -> BTreeSet<String> {
        let mut tables = BTreeSet::new();
        collect(&self.0["Plan"], is_meant, &mut tables);
        tables
    }
}

fn collect(node: &Value, is_meant: fn(&str) -> bool, tables: &mut BTreeSet<String>) {
    let kind = node["Node Type"].as_str().unwrap();
    if let Some(table) = node["Relation Name"].as_str().filter(|_| is_meant(kind)) {
        tables.insert(table.to_owned());
    }
    for child in node["Plans"].as_array().into_iter().flatten() {
        collect(child, is_meant, tables);
    }
}

static PLANS: Mutex<Vec<Plan>> = Mutex::new(Vec::new());

/// Keeps the plans that servers tell.
struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == NOTICES
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Notice);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Notice;

impl Visit for Notice {
    fn record_str(&mut self, field: &Field, value: &str) {
        let plan = value.split_once("plan:\n").filter(|_| field.name() == "message").map(|(_, plan)| plan);
        if let Some(plan) = plan {
            let plan = Plan(serde_json::from_str(plan).unwrap());
            PLANS.lock().unwrap_or_else(PoisonError::into_inner).push(plan);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}
