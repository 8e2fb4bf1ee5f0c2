//! An adapter around one executable that is a controller: docs/adapter-protocol.md, in Rust without dependencies.
//!
//!     rustc -O -o adapter adapter.rs
//!     replispec conformance run --kind controller --adapter './adapter ./mycontroller --port {port} --data {folder}'
//!
//! Real adapters generate the messages with prost; the few fields here are read by hand. This one cannot suspend
//! and does not tell of instances that end by themselves: a suite reports what rests on that as not checked.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

const LARGEST: u64 = 4 << 20;
const TURN: Duration = Duration::from_millis(50);
// Reasons of a refusal.
const UNSUPPORTED: u64 = 1;
const INVALID: u64 = 2;
const UNKNOWN_INSTANCE: u64 = 3;
const FAILED: u64 = 4;
const TIMED_OUT: u64 = 5;

/// A field of a message: a number, or bytes.
#[derive(Default, Clone)]
struct Field {
    value: u64,
    data: Vec<u8>,
}

type Message = HashMap<u64, Field>;

fn varint(data: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = data.split_first()?;
        *data = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Takes a message apart; the last of a field counts. Enough for messages whose fields come once.
fn parse(mut data: &[u8]) -> Option<Message> {
    let mut found = Message::new();
    while !data.is_empty() {
        let tag = varint(&mut data)?;
        let value = varint(&mut data)?;
        let mut field = Field { value, data: Vec::new() };
        match tag & 7 {
            0 => {}
            2 => {
                let size = usize::try_from(value).ok().filter(|size| *size <= data.len())?;
                field.data = data[..size].to_vec();
                data = &data[size..];
            }
            _ => return None,
        }
        found.insert(tag >> 3, field);
    }
    Some(found)
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn number(id: u64, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, id << 3);
    put(&mut out, value);
    out
}

fn bytes(id: u64, data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, id << 3 | 2);
    put(&mut out, data.len() as u64);
    out.extend_from_slice(data);
    out
}

fn refusal(reason: u64, remark: &str) -> Vec<u8> {
    bytes(5, &[number(1, reason), bytes(2, remark.as_bytes())].concat())
}

fn done() -> Vec<u8> {
    bytes(4, &[])
}

#[derive(Default)]
struct Instance {
    folder: PathBuf,
    port: u16,
    process: Option<Child>,
}

impl Instance {
    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

struct Adapter {
    command: Vec<String>,
    folder: PathBuf,
    instances: HashMap<String, Instance>,
}

impl Adapter {
    fn answer(&mut self, kind: u64, request: &Message) -> Vec<u8> {
        let name = request.get(&1).map(|field| String::from_utf8_lossy(&field.data).into_owned()).unwrap_or_default();
        match kind {
            2 => bytes(
                2,
                &[
                    number(1, 1),
                    bytes(2, b"example"),
                    bytes(3, b"1.0"),
                    bytes(4, b"rust"),
                    bytes(5, &[1]),          // roles: controllers
                    bytes(6, &[1, 3, 4, 5]), // abilities: crash, reset, keep storage, choose ports
                ]
                .concat(),
            ),
            3 => self.start(&name, request),
            4 | 5 | 8 => match self.instances.get_mut(&name) {
                Some(one) if kind == 8 && one.process.is_none() => {
                    let _ = fs::remove_dir_all(&one.folder);
                    self.instances.remove(&name);
                    done()
                }
                Some(one) if kind != 8 && one.process.is_some() => {
                    if kind == 5 {
                        let id = one.process.as_ref().map(|process| process.id().to_string()).unwrap_or_default();
                        let _ = Command::new("kill").arg(id).status();
                        let within = Duration::from_millis(request.get(&2).map_or(0, |field| field.value));
                        let until = Instant::now() + within;
                        while Instant::now() < until {
                            if matches!(one.process.as_mut().map(Child::try_wait), Some(Ok(Some(_)))) {
                                one.process = None;
                                return done();
                            }
                            thread::sleep(TURN);
                        }
                        one.kill();
                        return refusal(TIMED_OUT, "it did not end in time and was killed");
                    }
                    one.kill();
                    done()
                }
                _ => refusal(UNKNOWN_INSTANCE, "there is none of this name in the needed state"),
            },
            _ => refusal(UNSUPPORTED, "this adapter cannot do that"),
        }
    }

    fn start(&mut self, name: &str, request: &Message) -> Vec<u8> {
        if request.get(&2).map_or(0, |field| field.value) != 1 {
            return refusal(UNSUPPORTED, "only controllers");
        }
        if name.is_empty() || name.contains(['/', '.']) {
            return refusal(INVALID, "an instance is named by letters, digits, - and _");
        }
        let wanted = request.get(&3).and_then(|field| parse(&field.data)).unwrap_or_default();
        let folder = self.folder.join(name);
        let one = self.instances.entry(name.to_owned()).or_default();
        if one.process.is_some() {
            return refusal(INVALID, "it runs already");
        }
        match wanted.get(&3).and_then(|field| u16::try_from(field.value).ok()).unwrap_or(0) {
            0 if one.port != 0 => {}
            0 => match TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()) {
                Ok(address) => one.port = address.port(),
                Err(error) => return refusal(FAILED, &error.to_string()),
            },
            port => one.port = port,
        }
        let _ = fs::create_dir_all(&folder);
        one.folder = folder;
        let fill = |word: &String| {
            word.replace("{port}", &one.port.to_string()).replace("{folder}", &one.folder.to_string_lossy())
        };
        let words: Vec<String> = self.command.iter().map(fill).collect();
        // Its standard output must not reach ours.
        match Command::new(&words[0]).args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).spawn() {
            Ok(process) => one.process = Some(process),
            Err(error) => return refusal(FAILED, &error.to_string()),
        }
        let until = Instant::now() + Duration::from_millis(request.get(&10).map_or(0, |field| field.value));
        while TcpStream::connect(("127.0.0.1", one.port)).is_err() {
            if matches!(one.process.as_mut().map(Child::try_wait), Some(Ok(Some(_)))) {
                one.process = None;
                return refusal(FAILED, "it ended before it took connections");
            }
            if Instant::now() > until {
                one.kill();
                return refusal(TIMED_OUT, "not ready in time");
            }
            thread::sleep(TURN);
        }
        let place = [number(1, 1), bytes(2, b"127.0.0.1"), number(3, one.port.into())].concat();
        bytes(3, &[bytes(1, name.as_bytes()), bytes(2, &place)].concat())
    }
}

/// The next request; None at the end of standard input, or where it is no message.
fn read() -> Option<Message> {
    let mut input = std::io::stdin().lock();
    let mut head = Vec::new();
    loop {
        let mut byte = [0];
        input.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
        if byte[0] < 0x80 || head.len() > 5 {
            break;
        }
    }
    let size = varint(&mut &head[..]).filter(|size| *size <= LARGEST)?;
    let mut message = vec![0; size as usize];
    input.read_exact(&mut message).ok()?;
    parse(&message)
}

fn main() {
    let command: Vec<String> = env::args().skip(1).collect();
    if command.is_empty() {
        eprintln!("usage: adapter PROGRAM ARGS..., where {{port}} and {{folder}} are filled in");
        process::exit(2);
    }
    let folder = env::temp_dir().join(format!("adapter-rust-{}", process::id()));
    let mut adapter = Adapter { command, folder, instances: HashMap::new() };
    while let Some(request) = read() {
        let asked = (2..=8).find_map(|kind| request.get(&kind).map(|field| (kind, field)));
        let content = match asked.and_then(|(kind, field)| parse(&field.data).map(|fields| (kind, fields))) {
            Some((kind, fields)) => adapter.answer(kind, &fields),
            None => refusal(UNSUPPORTED, "this adapter does not know the request"),
        };
        let message = [number(1, request.get(&1).map_or(0, |field| field.value)), content].concat();
        let mut out = Vec::new();
        put(&mut out, message.len() as u64);
        out.extend_from_slice(&message);
        let mut output = std::io::stdout().lock();
        if output.write_all(&out).and_then(|()| output.flush()).is_err() {
            break;
        }
    }
    adapter.instances.values_mut().for_each(Instance::kill);
    let _ = fs::remove_dir_all(&adapter.folder);
}
