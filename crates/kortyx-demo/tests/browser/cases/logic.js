// The body of an asynchronous script: `arguments[0]` is told the results.
const done = arguments[0];

function equal(found, wanted) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${a} is not ${b}`);
}

const load = (name) => import(`/assets/${name}.js`);

const tests = {
  async events_are_read_however_they_are_cut() {
    const { EventReader } = await load("sse");
    const text = ': \n\ndata: {"a":1}\n\nid: 7\ndata: x\ndata: y\r\n\r\nevent: none\n\ndata: [DONE]\n\n';
    const wanted = [{ data: '{"a":1}' }, { id: "7", data: "x\ny" }, { data: "[DONE]" }];
    for (let size = 1; size <= text.length; size += 1) {
      const reader = new EventReader();
      const found = [];
      for (let at = 0; at < text.length; at += size) found.push(...reader.push(text.slice(at, at + size)));
      equal(found, wanted);
    }
  },

  async a_stream_that_ends_early_is_an_error() {
    const { chunks } = await load("sse");
    const found = [];
    try {
      for await (const chunk of chunks(new Response('data: {"type":"session"}\n\n'))) found.push(chunk.type);
      found.push("no error");
    } catch (error) {
      found.push(error.name);
    }
    equal(found, ["session", "TypeError"]);
  },

  async text_of_a_node_is_one_paragraph_and_messages_are_their_own() {
    const [{ begin, fold }, { said }] = [await load("turn"), await load("part")];
    const turn = [
      { type: "text-delta", node: "a", delta: "One " },
      { type: "text-delta", node: "a", delta: "two" },
      { type: "message", node: "a", content: "Three" },
      { type: "text-delta", node: "a", delta: "Four" },
      { type: "text-delta", node: "b", delta: "Five" },
      { type: "unheard-of" },
    ].reduce(fold, begin());
    equal(said(turn.parts), "One two\n\nThree\n\nFour\n\nFive");
  },

  async a_pass_that_begins_again_takes_back_what_it_said() {
    const [{ begin, fold }, { said }] = [await load("turn"), await load("part")];
    const [first, second] = ["0", "1"].map((segmentId) => ({ node: "a", opId: "op", segmentId }));
    const turn = [
      { type: "text-start", ...first },
      { type: "text-delta", ...first, delta: "One" },
      { type: "text-start", ...second },
      { type: "text-delta", ...second, delta: "Tw" },
      { type: "text-start", ...second },
      { type: "text-delta", ...second, delta: "Three" },
    ].reduce(fold, begin());
    equal(said(turn.parts), "One\n\nThree");
  },

  async a_call_is_one_part_from_its_start_to_its_end() {
    const { begin, fold } = await load("turn");
    const call = { node: "a", opId: "op", tool: "look", toolCallId: "call_0_0" };
    const [start, result] = [{ type: "tool-call-start", ...call, input: { day: "x" } }, { type: "tool-call-result", ...call, content: "text" }];
    const running = { id: "op/call_0_0", tool: "look", status: "running", input: { day: "x" } };
    equal(fold(begin(), start).parts, [{ call: running }]);
    equal([start, result].reduce(fold, begin()).parts, [{ call: { ...running, status: "done", output: "text" } }]);
  },

  async a_card_grows_and_is_final_or_gone() {
    const { begin, fold } = await load("turn");
    const chunk = (kind, more) => ({ type: "structured-data", streamId: "s", dataType: "t", kind, ...more });
    const grown = [
      chunk("set", { path: "title", value: "Tea" }),
      chunk("text-delta", { path: "about.text", delta: "Hot " }),
      chunk("text-delta", { path: "about.text", delta: "water" }),
      chunk("append", { path: "tips", items: ["a"] }),
      chunk("set", { path: "rows.0.x", value: 1 }),
      chunk("set", { path: "title.x", value: 1 }),
      chunk("append", { path: "title", items: [1] }),
    ].reduce(fold, begin());
    equal(grown.parts[0].card.data, { title: "Tea", about: { text: "Hot water" }, tips: ["a"], rows: [{ x: 1 }] });
    const final = [chunk("final", { data: { title: "T" } }), chunk("set", { path: "title", value: "late" })].reduce(fold, grown);
    equal([final.parts[0].card.data, final.parts[0].card.isFinal], [{ title: "T" }, true]);
    equal(fold(grown, { type: "structured-data-invalidated", streamId: "s" }).parts, []);
  },

  async a_decision_is_told_in_words() {
    const { spoken } = await load("answer");
    const told = (value) => spoken({ type: "value", value: { digest: "d", ...value } });
    equal(told({ decision: "approve" }), "Approved");
    equal(told({ decision: "approve", arguments: { guests: 3 } }), "Approved, with changes\nguests: 3");
    equal([told({ decision: "reject" }), told({ decision: "reject", feedback: "Too late." })], ["Rejected", "Rejected. Too late."]);
  },

  async an_approval_shows_the_arguments_and_sends_them_only_when_they_were_changed() {
    const { approval } = await load("approval");
    const request = { tool: "book", digest: "d", arguments: { guests: 2, kind: "b", note: "x" } };
    const properties = { guests: { $ref: "#/$defs/Count" }, kind: { enum: ["a", "b"] }, note: { type: "string", maxLength: 60 } };
    const responseSchema = { properties: { arguments: { type: "object", properties } }, $defs: { Count: { type: "integer" } } };
    const { node, read } = approval({ request, responseSchema }, "May it?");
    const at = (css) => node.querySelector(css);
    try {
      read();
      throw new Error("nothing was decided");
    } catch (error) {
      equal(error.constructor.name, "Unreadable");
    }
    at("[value=approve]").click();
    equal(read().value, { decision: "approve", digest: "d" });
    at("[data-path='/arguments/guests']").value = "3";
    equal(read().value, { decision: "approve", digest: "d", arguments: { guests: 3, kind: "b", note: "x" } });
    document.body.append(node);
    at("[value=reject]").click();
    at("[data-path='/feedback']").value = " no ";
    equal(read().value, { decision: "reject", digest: "d", feedback: "no" });
    node.remove();
  },

  async a_question_asked_again_is_one_question() {
    const { begin, fold } = await load("turn");
    const ask = { type: "interrupt", requestId: "human-1" };
    equal([ask, ask].reduce(fold, begin()).questions.length, 1);
  },

  async a_turn_ends_with_its_run_and_its_data() {
    const { begin, fold } = await load("turn");
    const turn = fold(begin(), { type: "done", data: { runId: "run-1", status: "completed", data: { reply: "x" } } });
    equal([turn.end, turn.runId, turn.data], ["completed", "run-1", { reply: "x" }]);
  },

  async answers_become_resume_metadata() {
    const { resume } = await load("answer");
    equal(resume("t", "r", { type: "select", ids: ["a"] }), { token: "t", requestId: "r", selected: ["a"] });
    equal(resume("t", "r", { type: "text", text: "a" }), { token: "t", requestId: "r", text: "a" });
    equal(resume("t", "r", { type: "value", value: null }), { token: "t", requestId: "r", value: null });
    equal(resume("t", "r", { type: "cancel" }), { token: "t", requestId: "r", cancel: true });
  },

  async time_is_told_in_a_unit_that_fits() {
    const { left } = await load("time");
    equal([0, 1, 59_000, 61_000, 3_600_000, 260_000_000].map(left), ["Time is up", "1 s left", "59 s left", "1:01 left", "1 h 0 min left", "3 days left"]);
  },

  async a_form_follows_references_and_knows_what_may_be_left_out() {
    const { resolve } = await load("schema");
    const root = { $defs: { Colour: { enum: ["red"] } } };
    equal(resolve({ anyOf: [{ $ref: "#/$defs/Colour" }, { type: "null" }], description: "D" }, root), { shape: { enum: ["red"], description: "D" }, nullable: true });
    equal(resolve({ type: ["string", "null"] }, root).shape.type, "string");
    equal(resolve({ $ref: "#/nowhere" }, root).shape, {});
    const loop = { $defs: { A: { $ref: "#/$defs/A" } } };
    equal(resolve({ $ref: "#/$defs/A" }, loop).shape, {});
  },

  async a_form_reads_what_is_filled_in() {
    const { form } = await load("schema");
    const { node, read } = form({
      type: "object",
      required: ["name", "size"],
      properties: {
        name: { type: "string" },
        size: { enum: [1, 2] },
        count: { type: "integer" },
        is: { type: "boolean" },
        tags: { type: "array", items: { type: "string" } },
        kinds: { type: "array", items: { enum: ["a", "b"] } },
        place: { type: "object", properties: { street: { type: "string" } } },
        other: {},
      },
    });
    const at = (path) => node.querySelector(`[data-path="${path}"]`);
    equal(read(), { is: false, tags: [], kinds: [], place: {} });
    at("/name").value = "x";
    at("/size").selectedIndex = 2;
    at("/count").value = "3";
    at("/tags").value = "one\n two \n";
    at("/kinds").checked = true;
    at("/place/street").value = "High";
    at("/other").value = '{"a": null}';
    equal(read(), { name: "x", size: 2, count: 3, is: false, tags: ["one", "two"], kinds: ["a"], place: { street: "High" }, other: { a: null } });
  },

  async a_form_shows_and_keeps_all_of_the_value_that_it_begins_with() {
    const { form } = await load("schema");
    const value = {
      day: "Friday",
      at: "2027-01-31T19:00:00Z",
      name: "one\ntwo",
      note: "",
      tags: [" padded "],
      kinds: ["b", "a"],
      place: null,
      nested: { street: "High", floor: 3 },
      undeclared: { amount: 900 },
    };
    const place = { type: "object", properties: { street: { type: "string" } } };
    const { node, read } = form(
      {
        type: "object",
        properties: {
          day: { type: "string", format: "date" },
          at: { type: "string", format: "date-time" },
          name: { type: "string", maxLength: 20 },
          note: { type: "string" },
          tags: { type: "array", items: { type: "string" } },
          kinds: { type: "array", items: { enum: ["a", "b"] } },
          place: { anyOf: [place, { type: "null" }] },
          nested: place,
        },
      },
      { value },
    );
    equal(read(), value);
    const shown = (path) => node.querySelector(`[data-path="${path}"]`).value;
    equal(["/day", "/at", "/nested/floor"].map(shown), ['"Friday"', '"2027-01-31T19:00:00Z"', "3"]);
    equal(JSON.parse(shown("/undeclared")), { amount: 900 });
  },

  async what_is_not_json_is_told() {
    const { Unreadable, form } = await load("schema");
    const { node, read } = form({});
    node.querySelector("textarea").value = "{";
    try {
      read();
    } catch (error) {
      return equal(error instanceof Unreadable, true);
    }
    throw new Error("it was read");
  },

  async failures_are_told_in_words_with_their_places() {
    const { words } = await load("words");
    const text = words({ code: "INVALID_RESPONSE", issues: [{ path: "/a~1b/0", message: "too short" }] });
    equal(text.split("\n")[1], "a/b › 0: too short");
    equal(words({ code: "SOMETHING", message: "as it is" }), "as it is");
    equal(words(undefined).length > 0, true);
  },

  async what_a_run_said_beyond_what_is_known_is_found() {
    const { rest } = await load("follow");
    const left = (text, known) => rest([{ text }], { text: known, shown: new Set() }).map((part) => part.text);
    equal(left("One two\n\nThree", "One two"), ["Three"]);
    equal(left("One two three", "One\n\ntwo"), ["three"]);
    equal(left("One", ""), ["One"]);
    equal([left("One", "One"), left("One", "One two"), left("One two", "Other")], [[], [], []]);
    const parts = [{ text: "One" }, { call: { id: "a" } }, { text: "Two" }, { call: { id: "b" } }];
    equal(rest(parts, { text: "One", shown: new Set(["call:a"]) }), [{ text: "Two" }, { call: { id: "b" } }]);
  },

  async the_history_is_what_was_said_and_not_what_was_noted() {
    const { history } = await load("transcript");
    const entries = ["you", "note", "flow"].map((who) => [who, { who, text: who }]);
    equal(history(entries), [{ role: "user", content: "you" }, { role: "assistant", content: "flow" }]);
    equal(history(entries, 1).length, 1);
  },
};

(async () => {
  const results = [];
  for (const [name, test] of Object.entries(tests)) {
    const fault = await test().then(() => null, (error) => String(error));
    results.push({ name, fault });
  }
  return results;
})().then(done, (error) => done([{ name: "all", fault: String(error) }]));
