//! Mail as Gmail's JSON has it: finding headers, reading the text of a message, writing a raw one.

const std = @import("std");
const connector = @import("connector");
const member = connector.member;
const string = connector.string;
const Value = std.json.Value;
const Buffer = std.array_list.Managed(u8);

const max_depth = 32;

pub const TextError = error{ OutOfMemory, BadBase64, TooDeep, Separate };

/// The first header of that name, compared as RFC 5322 does, without regard to case.
pub fn header(payload: Value, name: []const u8) ?[]const u8 {
    const list = member(payload, "headers") orelse return null;
    if (list != .array) return null;
    for (list.array.items) |entry| {
        const its_name = string(entry, "name") orelse continue;
        if (std.ascii.eqlIgnoreCase(its_name, name)) return string(entry, "value");
    }
    return null;
}

/// Everything of a message that a recipient would get: the plain text, then the source of each
/// other text part and the name of each attachment, so that nothing is sent unseen.
pub fn wholeText(gpa: std.mem.Allocator, payload: Value) TextError![]const u8 {
    var plain: Buffer = .init(gpa);
    var others: Buffer = .init(gpa);
    try collect(gpa, payload, &plain, &others, 0);
    try plain.appendSlice(others.items);
    return plain.toOwnedSlice();
}

/// Whether the message is one plain text and nothing else, so that writing its text anew loses nothing.
pub fn isPlain(payload: Value) bool {
    if (member(payload, "parts")) |parts| {
        if (parts == .array and parts.array.items.len > 0) return false;
    }
    const kind = string(payload, "mimeType") orelse return false;
    const name = string(payload, "filename") orelse "";
    return std.ascii.eqlIgnoreCase(kind, "text/plain") and name.len == 0;
}

fn collect(gpa: std.mem.Allocator, part: Value, plain: *Buffer, others: *Buffer, depth: usize) TextError!void {
    if (depth > max_depth) return error.TooDeep;
    const kind = string(part, "mimeType") orelse "text/plain";
    const name = string(part, "filename") orelse "";
    if (member(part, "parts")) |parts| {
        if (parts == .array and parts.array.items.len > 0) {
            for (parts.array.items) |inner| try collect(gpa, inner, plain, others, depth + 1);
            return;
        }
    }
    if (name.len > 0 or !std.ascii.startsWithIgnoreCase(kind, "text/")) {
        if (std.ascii.startsWithIgnoreCase(kind, "multipart/")) return;
        for ([_][]const u8{ "\n--- attached: ", if (name.len > 0) name else "(no name)", " (", kind, ") ---\n" }) |piece|
            try others.appendSlice(piece);
        return;
    }
    const body = member(part, "body") orelse return;
    if (member(body, "attachmentId") != null) return error.Separate;
    const data = string(body, "data") orelse return;
    const text = try decode(gpa, data);
    if (std.ascii.eqlIgnoreCase(kind, "text/plain")) {
        if (plain.items.len > 0) try plain.appendSlice("\n");
        try plain.appendSlice(text);
    } else {
        for ([_][]const u8{ "\n--- ", kind, " ---\n", text }) |piece| try others.appendSlice(piece);
    }
}

/// Drops the ids of attachments: Gmail makes them anew for every answer, so a message would never
/// be the same twice. What is attached cannot change without a new id of the message.
pub fn dropAttachmentIds(part: *Value) void {
    if (part.* != .object) return;
    if (part.object.getPtr("body")) |body| {
        if (body.* == .object) _ = body.object.orderedRemove("attachmentId");
    }
    const parts = part.object.getPtr("parts") orelse return;
    if (parts.* == .array) for (parts.array.items) |*inner| dropAttachmentIds(inner);
}

/// Base64url, padded or not, into valid UTF-8: bytes that are none become U+FFFD.
fn decode(gpa: std.mem.Allocator, data: []const u8) TextError![]const u8 {
    const bare = std.mem.trimEnd(u8, data, "=");
    const codec = std.base64.url_safe_no_pad.Decoder;
    const size = codec.calcSizeForSlice(bare) catch return error.BadBase64;
    const bytes = try gpa.alloc(u8, size);
    codec.decode(bytes, bare) catch return error.BadBase64;
    return utf8(gpa, bytes);
}

fn utf8(gpa: std.mem.Allocator, bytes: []const u8) ![]const u8 {
    if (std.unicode.utf8ValidateSlice(bytes)) return bytes;
    var clean: Buffer = .init(gpa);
    var at: usize = 0;
    while (at < bytes.len) {
        const len: usize = std.unicode.utf8ByteSequenceLength(bytes[at]) catch 0;
        if (len > 0 and at + len <= bytes.len and std.unicode.utf8ValidateSlice(bytes[at .. at + len])) {
            try clean.appendSlice(bytes[at .. at + len]);
            at += len;
        } else {
            try clean.appendSlice("\u{FFFD}");
            at += 1;
        }
    }
    return clean.toOwnedSlice();
}

/// A message to write; a header that is null is left out.
pub const Message = struct {
    headers: []const struct {
        name: []const u8,
        value: ?[]const u8,
        kind: enum { addresses, text } = .text,
    },
    body: []const u8,

    /// RFC 5322 bytes in base64url, as Gmail's `message.raw` wants them.
    pub fn raw(self: Message, gpa: std.mem.Allocator) error{ OutOfMemory, LineBreakInHeader }![]const u8 {
        var out: Buffer = .init(gpa);
        for (self.headers) |field| {
            const value = field.value orelse continue;
            if (std.mem.indexOfAny(u8, value, "\r\n\x00") != null) return error.LineBreakInHeader;
            try out.appendSlice(field.name);
            try out.appendSlice(": ");
            if (field.kind == .addresses) try addressList(&out, value) else try encodedWords(&out, value);
            try out.appendSlice("\r\n");
        }
        try out.appendSlice("MIME-Version: 1.0\r\nContent-Type: text/plain; charset=\"UTF-8\"\r\n" ++
            "Content-Transfer-Encoding: base64\r\n\r\n");
        const encoder = std.base64.standard.Encoder;
        var at: usize = 0;
        var line: [76]u8 = undefined;
        while (at < self.body.len) : (at += 57) {
            const piece = self.body[at..@min(at + 57, self.body.len)];
            try out.appendSlice(encoder.encode(&line, piece));
            try out.appendSlice("\r\n");
        }
        const url = std.base64.url_safe_no_pad.Encoder;
        const into = try gpa.alloc(u8, url.calcSize(out.items.len));
        return url.encode(into, out.items);
    }
};

/// Addresses, split at commas outside quotes; a name beyond ASCII becomes encoded words, which must
/// not stand inside quotes.
fn addressList(out: *Buffer, value: []const u8) !void {
    var start: usize = 0;
    var quoted = false;
    var at: usize = 0;
    while (at <= value.len) : (at += 1) {
        if (at < value.len) {
            if (quoted and value[at] == '\\') {
                at += 1;
                continue;
            }
            if (value[at] == '"') quoted = !quoted;
            if (quoted or value[at] != ',') continue;
        }
        const end = @min(at, value.len);
        if (start > 0) try out.appendSlice(", ");
        try address(out, std.mem.trim(u8, value[@min(start, end)..end], " "));
        start = at + 1;
    }
}

fn address(out: *Buffer, text: []const u8) !void {
    const angle = std.mem.lastIndexOfScalar(u8, text, '<') orelse return out.appendSlice(text);
    const written = std.mem.trim(u8, text[0..angle], " ");
    if (isAscii(written)) return out.appendSlice(text);
    var name: Buffer = .init(out.allocator);
    var escaped = false;
    for (written) |byte| {
        if (!escaped and byte == '\\') {
            escaped = true;
        } else {
            if (escaped or byte != '"') try name.append(byte);
            escaped = false;
        }
    }
    try encodedWord(out, "", name.items);
    try out.appendSlice(" ");
    try out.appendSlice(text[angle..]);
}

fn isAscii(text: []const u8) bool {
    for (text) |byte| {
        if (byte >= 0x80) return false;
    }
    return true;
}

/// ASCII as it is; any run of words beyond it as RFC 2047 encoded words, split at character borders.
fn encodedWords(out: *Buffer, value: []const u8) !void {
    var words = std.mem.splitScalar(u8, value, ' ');
    var first = true;
    var before_encoded = false;
    while (words.next()) |word| {
        const plain = isAscii(word);
        if (!first) try out.appendSlice(" ");
        if (plain) {
            try out.appendSlice(word);
        } else {
            // Space between two encoded words is dropped by readers, so the second one carries it.
            try encodedWord(out, if (before_encoded) " " else "", word);
        }
        before_encoded = !plain;
        first = false;
    }
}

fn encodedWord(out: *Buffer, lead: []const u8, word: []const u8) !void {
    var buffer: [45]u8 = undefined;
    var line: [60]u8 = undefined;
    var rest = word;
    var lead_left = lead;
    var first = true;
    while (rest.len > 0) {
        @memcpy(buffer[0..lead_left.len], lead_left);
        var take = @min(rest.len, buffer.len - lead_left.len);
        while (take > 1 and take < rest.len and rest[take] & 0xC0 == 0x80) take -= 1;
        @memcpy(buffer[lead_left.len..][0..take], rest[0..take]);
        if (!first) try out.appendSlice(" ");
        try out.appendSlice("=?UTF-8?B?");
        try out.appendSlice(std.base64.standard.Encoder.encode(&line, buffer[0 .. lead_left.len + take]));
        try out.appendSlice("?=");
        rest = rest[take..];
        lead_left = "";
        first = false;
    }
}
