//! Every definition gets an answer in bounded time. One that is accepted compiles, and is accepted again.

use lockkeeper_crd_schema::crd::{
    Body, ContentType, FieldValidation, Request, Schema, Verdict, answer_definition,
};
use serde_json::Value;

pub fn run(text: &str) {
    for content_type in [ContentType::Json, ContentType::Yaml] {
        let answer = answer_definition(&request(Body::Text(text, content_type), None));
        let Verdict::Accepted(definition) = answer.verdict else {
            continue;
        };
        let again = answer_definition(&request(Body::Object(&definition), Some(&definition)));
        assert!(matches!(again.verdict, Verdict::Accepted(_)), "{definition}: {again:?}");
        let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
        for name in versions.filter_map(|it| it["name"].as_str()) {
            if let Err(error) = Schema::from_crd(&definition, name) {
                let error = error.to_string();
                assert!(error.contains("nested too deep"), "{definition}: {error}");
            }
        }
    }
}

fn request<'a>(body: Body<'a>, old: Option<&'a Value>) -> Request<'a> {
    Request {
        body,
        old,
        is_status: false,
        field_validation: FieldValidation::Ignore,
        namespace: "",
    }
}
