//! A headless Chromium, driven over a pair of pipes by its own protocol.

use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::TempDir;

/// Longer than any page takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// A browser without any network but loopback.
const FLAGS: &str = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
                     --disable-component-update --disable-sync --remote-debugging-pipe about:blank";

/// A browser under way.
pub(crate) struct Chromium {
    child: Child,
    commands: File,
    messages: Receiver<Value>,
    next: u64,
    _profile: TempDir,
}

/// A page that was opened, with everything that happened meanwhile.
pub(crate) struct Page<'a> {
    chromium: &'a mut Chromium,
    session: String,
    target: String,
    events: Vec<Value>,
}

/// How a page is looked at.
#[derive(Clone, Copy)]
pub(crate) struct View {
    pub(crate) width: u32,
    pub(crate) dark: bool,
    pub(crate) scripts: bool,
}

impl Chromium {
    /// Starts it. Pipes are named, because a child takes over only its first three files by itself.
    pub(crate) fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let [into, out] = ["in", "out"].map(|name| profile.path().join(name));
        let made = Command::new("mkfifo").args([&into, &out]).status().unwrap();
        assert!(made.success());
        let folder = profile.path().display();
        let script =
            format!("exec chromium {FLAGS} --user-data-dir={folder}/profile 3<{folder}/in 4>{folder}/out");
        let child = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let commands = OpenOptions::new().write(true).open(into).unwrap();
        let answers = BufReader::new(File::open(out).unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in answers.split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { break };
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Self { child, commands, messages, next: 0, _profile: profile }
    }

    fn receive(&self) -> Value {
        self.messages.recv_timeout(PATIENCE).expect("chromium answers (./tests/run installs it)")
    }

    /// Sends a command, and waits for its answer; what happens meanwhile is kept.
    fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: &Value,
        events: &mut Vec<Value>,
    ) -> Value {
        self.next += 1;
        let mut command = json!({ "id": self.next, "method": method, "params": params });
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        self.commands.write_all(format!("{command}\0").as_bytes()).unwrap();
        loop {
            let message = self.receive();
            if message["id"] == self.next {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            events.push(message);
        }
    }

    /// Opens a file, and waits until it is loaded.
    pub(crate) fn open(&mut self, file: &Path, view: View) -> Page<'_> {
        self.visit(&format!("file://{}", file.display()), view)
    }

    /// Opens an address, and waits until it is loaded.
    pub(crate) fn visit(&mut self, url: &str, view: View) -> Page<'_> {
        let mut events = vec![];
        let target = self.call(None, "Target.createTarget", &json!({ "url": "about:blank" }), &mut events);
        let target = target["targetId"].as_str().unwrap().to_owned();
        let attach = json!({ "targetId": target, "flatten": true });
        let session = self.call(None, "Target.attachToTarget", &attach, &mut events);
        let session = session["sessionId"].as_str().unwrap().to_owned();
        let mut page = Page { chromium: self, session, target, events };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), &json!({}));
        }
        let View { width, dark, scripts } = view;
        let size = json!({ "width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false });
        page.call("Emulation.setDeviceMetricsOverride", &size);
        let scheme = if dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        page.call("Emulation.setEmulatedMedia", &media);
        page.call("Emulation.setScriptExecutionDisabled", &json!({ "value": !scripts }));
        page.events.clear();
        page.call("Page.navigate", &json!({ "url": url }));
        page.wait_until_loaded();
        page
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Page<'_> {
    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.chromium.call(Some(&self.session), method, params, &mut self.events)
    }

    /// The value of an expression, or of its promise.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", &params);
        assert!(answer["exceptionDetails"].is_null(), "{answer}");
        answer["result"]["value"].clone()
    }

    fn wait_until_loaded(&mut self) {
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.chromium.receive();
            self.events.push(event);
        }
    }

    /// Does what leads to another page, and waits until that is loaded.
    pub(crate) fn follow(&mut self, statement: &str) {
        self.events.clear();
        self.evaluate(&format!("{{ setTimeout(() => {{ {statement} }}, 0); }}"));
        self.wait_until_loaded();
    }

    /// What the page holds once all garbage is gone: bytes of its heap, nodes and listeners, those that are not shown included.
    pub(crate) fn held(&mut self) -> [u64; 3] {
        self.call("HeapProfiler.collectGarbage", &json!({}));
        let heap = self.call("Runtime.getHeapUsage", &json!({}))["usedSize"].as_f64().unwrap_or(0.0) as u64;
        let counted = self.call("Memory.getDOMCounters", &json!({}));
        [heap, counted["nodes"].as_u64().unwrap_or(0), counted["jsEventListeners"].as_u64().unwrap_or(0)]
    }

    /// Presses a key, wherever the focus is.
    pub(crate) fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", &json!({ "type": kind, "key": key, "code": key }));
        }
    }

    /// Touches a place, moves the finger, and lets go.
    pub(crate) fn swipe(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.call("Emulation.setTouchEmulationEnabled", &json!({ "enabled": true }));
        let point = |(x, y): (f64, f64)| json!([{ "x": x, "y": y }]);
        for (kind, points) in [("touchStart", point(from)), ("touchMove", point(to)), ("touchEnd", json!([]))]
        {
            self.call("Input.dispatchTouchEvent", &json!({ "type": kind, "touchPoints": points }));
        }
    }

    /// Clicks on something that saves a file, and waits until it lies in the folder; answers its name.
    pub(crate) fn download(&mut self, folder: &Path, click: &str) -> String {
        let behaviour = json!({ "behavior": "allow", "downloadPath": folder, "eventsEnabled": true });
        self.chromium.call(None, "Browser.setDownloadBehavior", &behaviour, &mut self.events);
        self.evaluate(click);
        let is_done = |event: &Value| {
            event["method"] == "Browser.downloadProgress" && event["params"]["state"] == "completed"
        };
        while !self.events.iter().any(is_done) {
            let event = self.chromium.receive();
            self.events.push(event);
        }
        let begun = |event: &&Value| event["method"] == "Browser.downloadWillBegin";
        let name =
            self.events.iter().rfind(begun).expect("a download that began")["params"]["suggestedFilename"]
                .clone();
        self.events.retain(|event| !is_done(event));
        name.as_str().expect("a name").to_owned()
    }

    /// Forgets what has happened so far.
    pub(crate) fn forget_events(&mut self) {
        self.events.clear();
    }

    /// Everything that went wrong so far: errors on the console, exceptions, refused requests.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let is_complaint = |event: &&Value| match event["method"].as_str().unwrap_or("") {
            "Runtime.exceptionThrown" => true,
            "Runtime.consoleAPICalled" => event["params"]["type"] == "error",
            "Log.entryAdded" => event["params"]["entry"]["level"] == "error",
            _ => false,
        };
        self.events.iter().filter(is_complaint).map(Value::to_string).collect()
    }

    /// What was requested beside the page itself; embedded pictures need no request.
    pub(crate) fn requests(&self) -> Vec<String> {
        let sent = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        let urls = sent.filter_map(|event| event["params"]["request"]["url"].as_str());
        urls.filter(|url| !url.starts_with("data:")).map(str::to_owned).collect()
    }

    /// A picture of the page as it is seen, from its top, in PNG.
    pub(crate) fn photograph(&mut self, height: u32) -> Vec<u8> {
        let width = self.evaluate("innerWidth").as_u64().unwrap_or(0) as u32;
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let answer = self.call("Page.captureScreenshot", &json!({ "format": "png" }));
        decoded(answer["data"].as_str().unwrap_or(""))
    }

    /// A picture of a part of the page, in PNG: from the top of what an expression answers, over its width, at most so high.
    pub(crate) fn photograph_part(&mut self, element: &str, most: f64) -> Vec<u8> {
        let place = format!(
            "(() => {{ const {{ x, y, width, height }} = ({element}).getBoundingClientRect(); \
             return [x + scrollX, y + scrollY, width, height]; }})()"
        );
        let place = self.evaluate(&place);
        let [x, y, width, height] = [0, 1, 2, 3].map(|at| place[at].as_f64().unwrap_or(0.0));
        let clip = json!({ "x": x, "y": y, "width": width, "height": height.min(most), "scale": 1 });
        let params = json!({ "format": "png", "clip": clip, "captureBeyondViewport": true });
        let answer = self.call("Page.captureScreenshot", &params);
        decoded(answer["data"].as_str().unwrap_or(""))
    }

    /// Hides scrollbars, for pictures.
    pub(crate) fn hide_scrollbars(&mut self) {
        self.call("Emulation.setScrollbarsHidden", &json!({ "hidden": true }));
    }

    /// Shows the page as it is printed.
    pub(crate) fn show_print(&mut self) {
        self.call("Emulation.setEmulatedMedia", &json!({ "media": "print" }));
    }

    /// A PDF of the page, as a printer would get it.
    pub(crate) fn print(&mut self) -> usize {
        let answer = self.call("Page.printToPDF", &json!({ "printBackground": true }));
        answer["data"].as_str().unwrap_or("").len() * 3 / 4
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        let target = json!({ "targetId": self.target });
        if !std::thread::panicking() {
            self.chromium.call(None, "Target.closeTarget", &target, &mut vec![]);
        }
    }
}

/// Bytes that were written as base64.
fn decoded(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters: Vec<u8> = text.bytes().filter(|letter| *letter != b'=').collect();
    let mut bytes = vec![];
    for group in letters.chunks(4) {
        let bits = group.iter().fold(0u32, |bits, letter| bits << 6 | u32::from(value(*letter)));
        let bits = bits << (6 * (4 - group.len()));
        bytes.extend(bits.to_be_bytes()[1..group.len()].iter());
    }
    bytes
}
