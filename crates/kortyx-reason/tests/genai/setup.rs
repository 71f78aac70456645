//! Names, keys and capabilities.

use kortyx_reason::{Capabilities, GenaiModel, Message, Model as _, ModelErrorKind};

use crate::format::hear;

#[tokio::test]
async fn a_key_that_is_missing_is_named_and_nothing_is_sent() {
    for (name, variable) in [
        ("fireworks::some-model", "FIREWORKS_API_KEY"),
        ("groq::llama-3.3-70b-versatile", "GROQ_API_KEY"),
        ("deepseek-chat", "DEEPSEEK_API_KEY"),
        ("open_router::meta/llama", "OPEN_ROUTER_API_KEY"),
    ] {
        let model = GenaiModel::new(name).unwrap().endpoint("http://127.0.0.1:9/");
        if std::env::var_os(variable).is_some() {
            continue;
        }
        let error = model.check().unwrap_err();
        assert!(error.to_string().contains(variable), "{error}");
        assert_eq!(error.kind(), ModelErrorKind::Configuration);
        assert_eq!(
            hear(&model, &[Message::user("Tea.")], &[]).await.unwrap_err().kind(),
            ModelErrorKind::Configuration
        );
        assert!(model.api_key("sk-1").check().is_ok());
    }
    assert!(GenaiModel::new("ollama::qwen3").unwrap().check().is_ok());
}

#[test]
fn what_a_model_is_capable_of_follows_from_its_name_unless_it_is_said() {
    let schema = |name: &str| GenaiModel::new(name).unwrap().capabilities().json_schema;
    for name in ["gpt-4o-mini", "gpt-5-mini", "claude-sonnet-4-5", "gemini-3-flash"] {
        assert!(schema(name), "{name}");
    }
    for name in [
        "gpt-4",
        "claude-3-5-sonnet-latest",
        "gemini-2.5-pro",
        "deepseek-chat",
        "ollama::qwen3",
        "groq::llama-3.3-70b-versatile",
    ] {
        assert!(!schema(name), "{name}");
    }
    let none = Capabilities::default().with_tools(false).with_json_schema(false);
    assert_eq!(GenaiModel::new("gpt-4o").unwrap().with_capabilities(none).capabilities(), none);
}
