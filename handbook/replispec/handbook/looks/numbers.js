// Sphinx leaves numbers out of what is searched for; here they are codes of requests and answers.
if (typeof Search !== "undefined") {
  const parsed = Search._parseQuery;
  Search._parseQuery = (query) => {
    const found = parsed(query);
    for (const word of splitQuery(query.trim()).filter((each) => /^\d+$/.test(each))) {
      found[1].add(word);
      found[3].add(word);
    }
    return found;
  };
}
