//! A connector in Rust: `get_note` reads a note, `edit_note` replaces its text. It runs anew for each op.

use serde_json::{json, Value};
use std::io::Read;

const NOTES: &str = "https://notes.example.com/notes/";

fn run(op: &str, args: &Value) -> Result<Value, Failure> {
    match op {
        "get_note" => ask("GET", &(NOTES.to_owned() + &escape(text(args, "id")?)), None),
        "edit_note" => {
            let url = NOTES.to_owned() + &escape(text(args, "id")?);
            ask("PUT", &url, Some(json!({"text": text(args, "text")?})))
        }
        _ => Err(failure("connector_runtime_error", format!("there is no op {op}"))),
    }
}

/// What an op prints in place of an output; the class is one that docs/connectors.md lists.
struct Failure {
    class: &'static str,
    message: String,
}

fn failure(class: &'static str, message: impl Into<String>) -> Failure {
    Failure { class, message: message.into() }
}

fn text<'a>(args: &'a Value, name: &str) -> Result<&'a str, Failure> {
    match &args[name] {
        Value::String(text) => Ok(text),
        Value::Null => Err(failure("connector_runtime_error", format!("argument {name} is missing"))),
        _ => Err(failure("connector_runtime_error", format!("argument {name} must be a string"))),
    }
}

/// Percent-encodes one segment of a path.
fn escape(segment: &str) -> String {
    segment
        .bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => (byte as char).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[link(wasm_import_module = "aileron_host")]
extern "C" {
    fn http_request(envelope: *const u8, length: usize) -> i32;
    fn http_response_status() -> i32;
    fn http_response_size() -> i32;
    fn http_response_read(to: *mut u8, length: usize) -> i32;
}

/// Sends a request and returns the JSON object that answers it.
fn ask(method: &str, url: &str, body: Option<Value>) -> Result<Value, Failure> {
    let mut request = json!({"method": method, "url": url, "headers": {"Accept": "application/json"}});
    if let Some(body) = body {
        request["headers"]["Content-Type"] = json!("application/json");
        request["body"] = json!(body.to_string());
    }
    let envelope = request.to_string();
    // SAFETY: the pointers and lengths are those of buffers that live on during the calls.
    let (status, answer) = unsafe {
        if http_request(envelope.as_ptr(), envelope.len()) != 0 {
            // Aileron knows why.
            return Err(failure("network_error", "the request was refused or failed"));
        }
        let mut answer = vec![0; http_response_size() as usize];
        http_response_read(answer.as_mut_ptr(), answer.len());
        (http_response_status(), answer)
    };
    let value: Value = serde_json::from_slice(&answer).unwrap_or_default();
    if !(200..300).contains(&status) {
        let said = value["error"].as_str().unwrap_or("no reason given");
        return Err(failure("external_api_error", format!("the service answered {status}: {said}")));
    }
    if !value.is_object() {
        return Err(failure("external_api_error", "the service answered with something that is no JSON object"));
    }
    Ok(value)
}

fn main() {
    let mut input = String::new();
    let read = std::io::stdin().read_to_string(&mut input);
    let call: Value = read.ok().and_then(|_| serde_json::from_str(&input).ok()).unwrap_or_default();
    let printed = match run(call["op"].as_str().unwrap_or_default(), &call["args"]) {
        Ok(output) => json!({ "output": output }),
        Err(Failure { class, message }) => json!({"error": {"class": class, "message": message}}),
    };
    println!("{printed}");
}
